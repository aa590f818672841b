"""Train the model on a tale; what was best is kept: python train.py"""

from dataclasses import asdict, dataclass

import torch
from torch import Tensor, nn

import data
from model import LanguageModel, ModelConfig

STEPS = 120
WARMUP = 20
EVAL_EVERY = 20
MAX_NORM = 1.0
SEQ_LEN = 24


@dataclass
class Settings:
    share: float = 0.9
    batch: int = 16
    rate: float = 4e-3
    decay: float = 0.1
    smoothing: float = 0.02


def smoothed_loss(logits: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    """Cross-entropy in which each wrong word is right by a little."""
    logs = logits.log_softmax(dim=-1)
    right = logs.gather(-1, targets[..., None]).squeeze(-1)
    return -((1 - smoothing) * right + smoothing * logs.mean(dim=-1)).mean()


class Trainer:
    def __init__(
        self, model: nn.Module, share: float, batch: int, rate: float, **rest: float
    ) -> None:
        self.model, self.batch, self.rate = model, batch, rate
        self.smoothing = rest["smoothing"]
        self.cut = int(share * len(data.IDS))
        self.best: tuple[float, dict[str, Tensor]] | None = None

    def windows(self, step: int) -> Tensor:
        starts = torch.tensor(data.draw(step, self.batch, self.cut - SEQ_LEN))
        return data.IDS[starts[:, None] + torch.arange(SEQ_LEN + 1)]

    def lr(self, step: int) -> float:
        if step < WARMUP:
            return self.rate * (step + 1) / WARMUP
        return self.rate * (WARMUP / (step + 1)) ** 0.5

    def run(self, optimizer: torch.optim.Optimizer, steps: int) -> list[float]:
        optimizer.zero_grad()
        losses = torch.zeros(steps, dtype=torch.double)
        for step in range(steps):
            words = self.windows(step)
            logits = self.model.train()(words)[:, :-1]  # the shift is here
            loss = smoothed_loss(logits, words[:, 1:], self.smoothing)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), MAX_NORM)
            for group in optimizer.param_groups:
                group["lr"] = self.lr(step)
            optimizer.step()
            optimizer.zero_grad()
            losses[step] = loss.detach()
            if step % EVAL_EVERY == EVAL_EVERY - 1:
                self.compare()
        if self.best:
            self.model.load_state_dict(self.best[1])
        return losses.tolist()

    def compare(self) -> None:
        value = self.measure()
        if self.best is None or value < self.best[0]:
            state = self.model.state_dict()
            self.best = value, {name: tensor.clone() for name, tensor in state.items()}

    def measure(self) -> float:
        words = data.IDS[self.cut :]
        self.model.eval()
        losses = []
        with torch.inference_mode():
            for piece, after in zip(words[:-1].split(SEQ_LEN), words[1:].split(SEQ_LEN)):
                logs = self.model(piece[None])[0].log_softmax(-1)
                losses.append(-logs[torch.arange(len(after)), after])
        return torch.cat(losses).mean().item()


def make_model() -> LanguageModel:
    return LanguageModel(ModelConfig(len(data.WORDS)))


def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    settings = Settings()
    flat = [p for p in model.parameters() if p.ndim == 1]
    square = [p for p in model.parameters() if p.ndim != 1]
    return torch.optim.AdamW(
        [{"params": flat, "weight_decay": 0}, {"params": square}],
        lr=settings.rate,
        betas=(0.9, 0.98),
        weight_decay=settings.decay,
    )


def train(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int) -> list[float]:
    return Trainer(model, **asdict(Settings())).run(optimizer, steps)


def evaluate(model: nn.Module) -> float:
    return Trainer(model, **asdict(Settings())).measure()


@torch.inference_mode()
def generate(model: nn.Module, ids: Tensor, count: int) -> Tensor:
    model.eval()
    if count == 0:
        return ids
    best = model(ids[:, -SEQ_LEN:])[:, -1].topk(1).indices
    return generate(model, torch.cat((ids, best), 1), count - 1)


if __name__ == "__main__":
    torch.manual_seed(0)
    model = make_model()
    train(model, make_optimizer(model), STEPS)
    print(f"held out: {evaluate(model):.3f}")
    for noun, _ in data.CHAIN:
        print(data.decode(generate(model, data.encode(f"this is the {noun}")[None], 36)[0]))
