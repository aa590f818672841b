"""Train the model on a tale, keep it as it was when it was best, let it tell: python train.py"""

import copy
import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import data
from model import LanguageModel, ModelConfig

STEPS = 120
WARMUP = 20  # steps until the learning rate is at its peak
EVAL_EVERY = 20  # steps
MAX_NORM = 1.0  # of the gradient
SEQ_LEN = 24


@dataclass
class TrainConfig:
    warmup: int
    eval_every: int
    max_norm: float
    seq_len: int = SEQ_LEN
    batch_size: int = 16
    pieces: int = 1  # of a batch; one goes through the model at a time
    lr: float = 4e-3  # at its peak
    weight_decay: float = 0.1
    smoothing: float = 0.02  # of the labels, in training alone
    train_share: float = 0.9  # of the text; the model is measured on the rest


class Trainer:
    """Trains a model, measures it on the held-out end of the text, and keeps its best state."""

    def __init__(
        self, model: nn.Module, cfg: TrainConfig, optimizer: torch.optim.Optimizer | None = None
    ) -> None:
        self.model, self.cfg, self.optimizer = model, cfg, optimizer
        cut = int(len(data.IDS) * cfg.train_share)
        self.text, self.held_out = data.IDS[:cut], data.IDS[cut:]
        self.best_loss, self.best_state = math.inf, None

    def get_batch(self, step: int) -> tuple[Tensor, Tensor]:
        """Words of the text and the words that follow them, both (batch_size, seq_len)."""
        length = self.cfg.seq_len
        starts = data.draw(step, self.cfg.batch_size, len(self.text) - length)
        windows = torch.stack([self.text[start : start + length + 1] for start in starts])
        return windows[:, :-1], windows[:, 1:]

    def compute_loss(self, inputs: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
        logits = self.model(inputs)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), label_smoothing=smoothing)

    def set_lr(self, step: int) -> None:
        """In a line from lr / warmup in step 0 to lr, then down with the root of the steps."""
        warmup, steps = self.cfg.warmup, step + 1
        lr = self.cfg.lr * min(steps / warmup, math.sqrt(warmup / steps))
        for group in self.optimizer.param_groups:
            group["lr"] = lr

    def training_step(self, step: int) -> float:
        self.model.train()
        self.set_lr(step)
        inputs, targets = self.get_batch(step)
        parameters = list(self.model.parameters())
        for parameter in parameters:
            parameter.grad = torch.zeros_like(parameter)
        loss = sum(
            self.add_gradients(parameters, mine, theirs, len(mine) / len(inputs))
            for mine, theirs in zip(
                inputs.tensor_split(self.cfg.pieces), targets.tensor_split(self.cfg.pieces)
            )
        )
        nn.utils.clip_grad_norm_(parameters, self.cfg.max_norm)
        self.optimizer.step()
        return loss

    def add_gradients(
        self, parameters: list[Tensor], inputs: Tensor, targets: Tensor, share: float
    ) -> float:
        """Add those of the mean loss of some rows, times their share; that loss as well."""
        loss = self.compute_loss(inputs, targets, self.cfg.smoothing)
        for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters)):
            parameter.grad.add_(gradient, alpha=share)
        return loss.item() * share

    @torch.no_grad()
    def evaluate(self) -> float:
        """Mean loss over the held-out words, without smoothing."""
        self.model.eval()
        total, count = 0.0, 0
        for start in range(0, len(self.held_out) - 1, self.cfg.seq_len):
            window = self.held_out[start : start + self.cfg.seq_len + 1].unsqueeze(0)
            inputs, targets = window[:, :-1], window[:, 1:]
            total += self.compute_loss(inputs, targets).item() * targets.numel()
            count += targets.numel()
        return total / count

    def checkpoint(self) -> float:
        """Measure the model, and remember its state if it was never better."""
        loss = self.evaluate()
        if loss < self.best_loss:
            self.best_loss = loss
            self.best_state = copy.deepcopy(self.model.state_dict())
        return loss

    def fit(self, steps: int) -> list[float]:
        """Take `steps` steps and go back to the best state that was measured; the losses."""
        history = []
        for step in range(1, steps + 1):
            history.append(self.training_step(step - 1))
            if step % self.cfg.eval_every == 0:
                print(f"step {step}: {history[-1]:.3f}, held out {self.checkpoint():.3f}")
        if self.best_state is not None:
            self.model.load_state_dict(self.best_state)
        return history


def make_config(pieces: int = 1) -> TrainConfig:
    return TrainConfig(warmup=WARMUP, eval_every=EVAL_EVERY, max_norm=MAX_NORM, pieces=pieces)


def make_model() -> LanguageModel:
    return LanguageModel(ModelConfig(vocab_size=len(data.WORDS)))


def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    """AdamW; only matrices decay, not biases and what LayerNorms learn."""
    cfg = make_config()
    decay, rest = [], []
    for name, parameter in model.named_parameters():
        (rest if "norm" in name or name.endswith("bias") else decay).append(parameter)
    groups = [
        {"params": decay, "weight_decay": cfg.weight_decay},
        {"params": rest, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=cfg.lr, betas=(0.9, 0.98))


def train(
    model: nn.Module, optimizer: torch.optim.Optimizer, steps: int, pieces: int = 1
) -> list[float]:
    """The losses of `steps` steps, each in so many pieces."""
    return Trainer(model, make_config(pieces), optimizer).fit(steps)


def evaluate(model: nn.Module) -> float:
    return Trainer(model, make_config()).evaluate()


@torch.no_grad()
def generate(model: nn.Module, ids: Tensor, count: int) -> Tensor:
    """`ids` (batch, length) and `count` more words, each the likeliest: (batch, length + count)."""
    model.eval()
    for _ in range(count):
        window = ids[:, -SEQ_LEN:]
        word = model(window)[:, -1].argmax(dim=-1, keepdim=True)
        ids = torch.cat([ids, word], dim=1)
    return ids


def main() -> None:
    torch.manual_seed(0)
    model = make_model()
    train(model, make_optimizer(model), STEPS)
    print(f"held out: {evaluate(model):.3f}")
    for noun, _ in data.CHAIN:
        ids = data.encode(f"this is the {noun}").unsqueeze(0)
        print(data.decode(generate(model, ids, 36)[0]).partition(" .")[0])


if __name__ == "__main__":
    main()
