"""Teach the model to put digits in order, then let it show what it learned: python train.py"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from torch.optim.lr_scheduler import LambdaLR

import data
from cache import KVCache
from model import Config, Llama

STEPS = 120
BATCH = 32
MICRO_BATCH = 16  # lines that go through the model at once
PEAK_LR = 8e-3
WARM_UP = 15  # steps until the learning rate is at its peak
DECAY_UNTIL = STEPS  # the step at which it is at its floor
FLOOR = 0.1  # of the peak
WEIGHT_DECAY = 0.05
CLIP = 1.0
EVALUATE_EVERY = 40
IGNORED = -100  # the label of what is not to be predicted


def make_model() -> Llama:
    return Llama(Config(vocab=len(data.SYMBOLS)))


def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    """AdamW over all parameters; the gains of the norms do not decay."""
    weights = [p for p in model.parameters() if p.dim() > 1]
    gains = [p for p in model.parameters() if p.dim() == 1]
    groups = [{"params": weights}, {"params": gains, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=PEAK_LR, betas=(0.9, 0.95), weight_decay=WEIGHT_DECAY)


def lr_factor(step: int) -> float:
    """Of step 0, 1, ...: a line from 1 / WARM_UP to 1 in step WARM_UP - 1; a cosine to FLOOR."""
    if step < WARM_UP:
        return (step + 1) / WARM_UP
    progress = (step - WARM_UP) / (DECAY_UNTIL - WARM_UP)
    cosine = 0.5 * (1 + math.cos(math.pi * min(progress, 1.0)))
    return FLOOR + (1 - FLOOR) * cosine


def collate(lines: list[str]) -> tuple[Tensor, Tensor]:
    """Inputs and labels (B, longest - 1); only the answer and its end are to be predicted."""
    ids = pad_sequence([data.encode(line) for line in lines], True, data.PADDING)
    inputs, labels = ids[:, :-1], ids[:, 1:].clone()
    for row, line in enumerate(lines):
        labels[row, : line.index("=")] = IGNORED
    labels[labels == data.PADDING] = IGNORED
    return inputs, labels


def sum_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy, added up over the labels that count."""
    return F.cross_entropy(
        logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED, reduction="sum"
    )


def train(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int) -> list[float]:
    """Take `steps` steps; of each the mean loss over every label of its batch."""
    scheduler = LambdaLR(optimizer, lr_factor)
    losses = []
    for step in range(steps):
        model.train()
        inputs, labels = collate(data.draw(step, BATCH))
        count = (labels != IGNORED).sum()
        optimizer.zero_grad()
        total = 0.0
        for x, y in zip(inputs.split(MICRO_BATCH), labels.split(MICRO_BATCH)):
            loss = sum_loss(model(x), y) / count
            loss.backward()
            total += loss.item()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        scheduler.step()
        losses.append(total)
        if (step + 1) % EVALUATE_EVERY == 0:
            print(f"step {step + 1}: loss {total:.3f}, accuracy {evaluate(model):.3f}")
    return losses


@torch.no_grad()
def evaluate(model: nn.Module) -> float:
    """The share of right symbols among all answers of the lines that are held out."""
    model.eval()
    right, count = 0, 0
    for first in range(0, len(data.HELD_OUT), 25):
        inputs, labels = collate(data.HELD_OUT[first : first + 25])
        counted = labels != IGNORED
        guesses = model(inputs).argmax(dim=-1)
        right += (guesses == labels)[counted].sum().item()
        count += counted.sum().item()
    return right / count


@torch.no_grad()
def generate(model: nn.Module, ids: Tensor, count: int) -> Tensor:
    """`ids` (B, T) and the `count` likeliest next ones, padding once a row has its end."""
    model.eval()
    cache = KVCache(len(model.layers))
    logits = model(ids, cache=cache)
    for number in range(count):
        if number:
            logits = model(ids[:, -1:], cache=cache)
        following = logits[:, -1].argmax(dim=-1)
        ended = (ids == data.END).any(dim=1)
        following = following.masked_fill(ended, data.PADDING)
        ids = torch.cat([ids, following[:, None]], dim=1)
    return ids


def main() -> None:
    torch.manual_seed(0)
    model = make_model()
    train(model, make_optimizer(model), STEPS)
    print(f"accuracy on held-out lines: {evaluate(model):.3f}")
    for line in data.HELD_OUT[:5]:
        question, answer = line.split("=")
        found = data.decode(generate(model, data.encode(question + "=")[None], 7)[0])
        print(found, "right" if found == line else f"wrong: {answer}")


if __name__ == "__main__":
    main()
