"""The same training with an optimizer step of its own and the shift in the loss."""

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import data
from model import GPT

CONTEXT = 40
BATCH = 4
STEPS = 120
LEARNING_RATE = 3e-3
WEIGHT_DECAY = 0.1
CLIP = 1.0
EVALUATE_EVERY = 40
IGNORED = -100


def make_model() -> GPT:
    return GPT(
        vocabulary=len(data.CHARACTERS), context=CONTEXT, width=64, heads=4, layers=2, dropout=0.05
    )


def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    decay = [p for n, p in model.named_parameters() if p.ndim > 1]
    rest = [p for n, p in model.named_parameters() if p.ndim <= 1]
    return torch.optim.AdamW(
        [dict(params=rest, weight_decay=0.0), dict(params=decay)],
        lr=LEARNING_RATE,
        weight_decay=WEIGHT_DECAY,
    )


def make_batch(lines: list[int]) -> tuple[Tensor, Tensor]:
    longest = max(len(data.IDS[line]) for line in lines)
    ids = torch.full((len(lines), longest), data.PADDING)
    for row, line in enumerate(lines):
        ids[row, : len(data.IDS[line])] = data.IDS[line]
    targets = ids[:, 1:].clone()
    targets[targets == data.PADDING] = IGNORED
    return ids[:, :-1], targets


def take_step(model: nn.Module, optimizer: torch.optim.Optimizer, lines: list[int]) -> float:
    inputs, targets = make_batch(lines)
    loss = cross_entropy(model(inputs).transpose(1, 2), targets)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), CLIP)
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
    return float(loss.detach())


def train(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int) -> list[float]:
    model.train()
    optimizer.zero_grad()
    history = []
    for step in range(1, steps + 1):
        history.append(take_step(model, optimizer, data.draw(step - 1, BATCH)))
        if step % EVALUATE_EVERY == 0:
            print(f"{step}: {history[-1]:.3f} {evaluate(model):.3f}")
    return history


def evaluate(model: nn.Module) -> float:
    was_training = model.training
    model.eval()
    with torch.inference_mode():
        inputs, targets = make_batch(list(range(len(data.IDS))))
        loss = cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
    model.train(was_training)
    return loss.item()


def generate(model: nn.Module, ids: Tensor, count: int) -> Tensor:
    model.eval()
    with torch.no_grad():
        for _ in range(count):
            start = max(0, ids.shape[1] - CONTEXT)
            best = model(ids[:, start:])[:, -1, :].max(dim=-1).indices
            ids = torch.cat((ids, best[:, None]), dim=1)
    return ids
