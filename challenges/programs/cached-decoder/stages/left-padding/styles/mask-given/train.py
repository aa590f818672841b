"""Teach the model to walk from note to note, then let it answer from its cache: python train.py"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn, optim

import data
from model import CachedDecoder

CONTEXT = 32  # tokens that the model can read and write
BATCH_SIZE = 24
STEPS = 150
LR = 5e-3
MAX_NORM = 1.0  # of the gradient
KEEP = 0.9  # of the averaged weights in each step
IGNORE = -100  # the target of what is not asked


def make_model() -> CachedDecoder:
    return CachedDecoder(len(data.TOKENS), CONTEXT)


def make_optimizer(model: nn.Module) -> optim.Optimizer:
    return optim.Adam(model.parameters(), lr=LR, betas=(0.9, 0.95))


def collate(walks: list[str]) -> tuple[Tensor, Tensor]:
    """Inputs and targets, (B, longest - 1); asked are the notes of the answer, and its end."""
    rows = [data.encode(walk) for walk in walks]
    longest = max(len(row) for row in rows) - 1
    inputs = torch.full((len(rows), longest), data.PADDING)
    targets = torch.full((len(rows), longest), IGNORE)
    for number, row in enumerate(rows):
        inputs[number, : len(row) - 1] = row[:-1]
        targets[number, data.QUESTION - 1 : len(row) - 1] = row[data.QUESTION :]
    return inputs, targets


def loss_of(model: nn.Module, inputs: Tensor, targets: Tensor) -> Tensor:
    """The mean over all tokens that are asked."""
    logits = model(inputs)
    return F.cross_entropy(logits.transpose(1, 2), targets, ignore_index=IGNORE)


def train(model: nn.Module, optimizer: optim.Optimizer, steps: int) -> list[float]:
    """Take `steps` steps while the rate falls in a line from LR towards 0; the losses.

    At the end the model has the moving averages of its weights, in which KEEP of the old average
    stays in each step.
    """
    averages = [p.detach().clone() for p in model.parameters()]
    history = []
    model.train()
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = LR * (1 - step / steps)
        inputs, targets = collate(data.draw(step, BATCH_SIZE))
        loss = loss_of(model, inputs, targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            for average, p in zip(averages, model.parameters()):
                average.lerp_(p, 1 - KEEP)
        history.append(loss.item())
        if step % 50 == 0:
            print(f"step {step}: loss {history[-1]:.3f}")
    with torch.no_grad():
        for average, p in zip(averages, model.parameters()):
            p.copy_(average)
    return history


@torch.inference_mode()
def evaluate(model: nn.Module) -> float:
    """The perplexity of the held-out answers: e to the mean loss over all their tokens."""
    model.eval()
    total, count = 0.0, 0
    for start in range(0, len(data.HELD_OUT), 8):
        inputs, targets = collate(data.HELD_OUT[start : start + 8])
        asked = int((targets != IGNORE).sum())
        total += loss_of(model, inputs, targets).item() * asked
        count += asked
    return math.exp(total / count)


@torch.inference_mode()
def generate(model: nn.Module, ids: Tensor, count: int) -> Tensor:
    """`ids` (B, T) and the `count` likeliest next ones; padding behind the end of a row.

    What is in `ids` is read in one pass, then each new token alone. Padding to the left of a row
    is as if it were not there.
    """
    model.eval()
    room = ids.size(1) + count
    caches = model.new_caches(ids.size(0), room)
    skipped = torch.tensor(
        [
            next((n for n, token in enumerate(row) if token != data.PADDING), 0)
            for row in ids.tolist()
        ]
    )
    ended = (ids == data.END).any(dim=1)
    unread = ids
    while ids.size(1) < room and not ended.all():
        logits = model(unread, caches, skipped)[:, -1]
        unread = logits.argmax(dim=-1, keepdim=True).masked_fill(ended[:, None], data.PADDING)
        ended = ended | (unread[:, 0] == data.END)
        ids = torch.cat([ids, unread], dim=1)
    return F.pad(ids, (0, room - ids.size(1)), value=data.PADDING)


def main() -> None:
    torch.manual_seed(0)
    model = make_model()
    train(model, make_optimizer(model), STEPS)
    print(f"perplexity of the answers that are held out: {evaluate(model):.3f}")
    questions = torch.stack([data.encode(walk)[: data.QUESTION] for walk in data.HELD_OUT[:8]])
    for walk, answer in zip(data.HELD_OUT, generate(model, questions, 8)):
        found = data.decode(answer).rstrip(" _")
        print(found, "right" if found == walk else f"wrong: {walk}")


if __name__ == "__main__":
    main()
