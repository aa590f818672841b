"""Teach the classifier what is praise and what is not: python train.py"""

from collections import Counter

import torch
from torch import Tensor, nn

import data
from model import Classifier

STEPS = 120
BATCH_SIZE = 32
LEARNING_RATE = 1e-2
DECAY_AT = 90
CLIP = 0.5
REPORT_EVERY = 40


def make_model() -> Classifier:
    return Classifier(len(data.VOCABULARY), len(data.CLASSES), data.LONGEST, 32, 4, 2, 0.05)


def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.Adam([{"params": list(model.parameters())}], LEARNING_RATE)


def weigh() -> list[float]:
    """A weight for each class; the mean weight of a training review is 1."""
    counts = Counter(kind for _, kind in data.TRAINING)
    return [len(data.TRAINING) / len(counts) / counts[kind] for kind in sorted(counts)]


def collate(reviews: list[data.Review]) -> tuple[Tensor, Tensor, Tensor]:
    texts, kinds = zip(*reviews)
    longest = max(map(len, texts))
    ids = torch.full((len(texts), longest), data.PAD)
    mask = torch.zeros(len(texts), longest, dtype=torch.bool)
    for row, text in enumerate(texts):
        ids[row, : len(text)] = torch.tensor(text)
        mask[row, : len(text)] = True
    return ids, mask, torch.tensor(kinds)


def train(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int) -> list[float]:
    weights = torch.tensor(weigh())
    curve = []
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = LEARNING_RATE * (0.1 if step >= DECAY_AT else 1.0)
        model.train()
        optimizer.zero_grad()
        ids, mask, kinds = collate(data.draw(step, BATCH_SIZE))
        logs = model(ids, mask).log_softmax(-1)
        surprise = -logs[torch.arange(len(kinds)), kinds]
        loss = (surprise * weights[kinds]).sum() / weights[kinds].sum()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        curve.append(float(loss))
    return curve


def predict(model: nn.Module, ids: Tensor, mask: Tensor) -> list[int]:
    model.eval()
    with torch.no_grad():
        return model(ids, mask).max(dim=1).indices.tolist()


def evaluate(model: nn.Module) -> float:
    ids, mask, kinds = collate(data.HELD_OUT)
    right = torch.tensor(predict(model, ids, mask)) == kinds
    recalls = [right[kinds == kind].double().mean().item() for kind in range(len(data.CLASSES))]
    return sum(recalls) / len(recalls)


if __name__ == "__main__":
    torch.manual_seed(0)
    model = make_model()
    print(f"last loss: {train(model, make_optimizer(model), STEPS)[-1]:.3f}")
    print(f"mean recall on held-out reviews: {evaluate(model):.3f}")
