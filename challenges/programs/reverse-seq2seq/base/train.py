"""Teach the model to write words backwards, then let it try words it never saw: python train.py"""

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

import data
from model import Seq2Seq

STEPS = 120
WORDS = 32  # of a step
RATE = 4e-3
WARM_UP = 10  # steps until the learning rate is RATE
SMOOTHING = 0.05  # of the probability goes to all classes alike
LONGEST = 16  # ids of a row


def make_model() -> Seq2Seq:
    return Seq2Seq(data.VOCABULARY, LONGEST)


def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.95), weight_decay=0.01)


def collate(words: list[str]) -> tuple[Tensor, Tensor, Tensor]:
    """Of each word: source, what the decoder reads, and what it has to say; (B, longest + 1) each.

    The decoder reads the start and the answer, and says the answer and the end.
    """
    sources = [data.encode(word) for word in words]
    answers = [data.encode(word[::-1]) for word in words]
    start = torch.tensor([data.START])
    read = [torch.cat([start, answer[:-1]]) for answer in answers]
    source, written, targets = (
        pad_sequence(rows, batch_first=True, padding_value=data.PAD)
        for rows in (sources, read, answers)
    )
    return source, written, targets


def smoothed_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy with targets of 1 - SMOOTHING on the right class and SMOOTHING spread evenly
    over all classes; the mean over all targets that are no padding."""
    logs = logits.log_softmax(dim=-1)
    right = logs.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    evenly = logs.mean(dim=-1)
    losses = -(1 - SMOOTHING) * right - SMOOTHING * evenly
    real = targets != data.PAD
    return (losses * real).sum() / real.sum()


def train(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int) -> list[float]:
    """Take `steps` steps; the losses. The rate is RATE / WARM_UP in the first step, rises in a line
    to RATE in step number WARM_UP, and stays."""
    warm_up = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, (step + 1) / WARM_UP)
    )
    losses = []
    model.train()
    for step in range(steps):
        source, written, targets = collate(data.draw(step, WORDS))
        loss = smoothed_loss(model(source, written), targets)
        loss.backward()
        optimizer.step()
        warm_up.step()
        model.zero_grad()
        losses.append(loss.item())
        if step % 30 == 29:
            print(f"step {step + 1}: loss {losses[-1]:.3f}")
    return losses


@torch.no_grad()
def evaluate(model: nn.Module) -> float:
    """The mean over the held-out words of the logarithm of the probability of the whole answer."""
    model.eval()
    total = 0.0
    for words in (data.HELD_OUT[n : n + 16] for n in range(0, len(data.HELD_OUT), 16)):
        source, written, targets = collate(words)
        logs = model(source, written).log_softmax(dim=-1)
        right = logs.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
        total += right.masked_fill(targets == data.PAD, 0.0).sum().item()
    return total / len(data.HELD_OUT)


@torch.no_grad()
def generate(model: nn.Module, source: Tensor, count: int) -> Tensor:
    """The `count` likeliest ids behind the start, (B, count); padding behind the end of a row."""
    model.eval()
    memory = model.encode(source)
    written = torch.full((len(source), 1), data.START)
    for _ in range(count):
        following = model.decode(written, memory, source)[:, -1].argmax(dim=-1)
        over = (written == data.END).any(dim=1)
        following = torch.where(over, data.PAD, following)
        written = torch.cat([written, following.unsqueeze(1)], dim=1)
    return written[:, 1:]


def main() -> None:
    torch.manual_seed(0)
    model = make_model()
    train(model, make_optimizer(model), STEPS)
    print(f"log probability of an answer that is held out: {evaluate(model):.3f}")
    words = data.HELD_OUT[:8]
    source, *_ = collate(words)
    for word, answer in zip(words, generate(model, source, 6)):
        found = data.decode(answer)
        print(f"{word}: {found} {'right' if found == word[::-1] else 'wrong'}")


if __name__ == "__main__":
    main()
