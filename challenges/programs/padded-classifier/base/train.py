"""Teach the classifier what is praise and what is not: python train.py"""

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from torch.optim.lr_scheduler import MultiStepLR

import data
from model import Classifier

STEPS = 120
BATCH_SIZE = 32
LEARNING_RATE = 1e-2
DECAY_AT = 90  # the step from which on the rate is a tenth
CLIP = 0.5
REPORT_EVERY = 40


def make_model() -> Classifier:
    return Classifier(
        vocab_size=len(data.VOCABULARY),
        num_classes=len(data.CLASSES),
        max_length=data.LONGEST,
        hidden_size=32,
        num_heads=4,
        num_layers=2,
        dropout=0.05,
    )


def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)


def class_weights(labels: Tensor) -> Tensor:
    """For each class how much rarer it is than if all were as frequent: N / (classes * count)."""
    counts = labels.bincount(minlength=len(data.CLASSES))
    return labels.numel() / (len(data.CLASSES) * counts)


WEIGHTS = class_weights(torch.tensor([label for _, label in data.TRAINING]))


def collate(reviews: list[data.Review]) -> tuple[Tensor, Tensor, Tensor]:
    """Padded ids and their mask (B, longest), True where a word is real, and labels (B,)."""
    rows = [torch.tensor(ids) for ids, _ in reviews]
    labels = torch.tensor([label for _, label in reviews])
    ids = pad_sequence(rows, batch_first=True, padding_value=data.PAD)
    return ids, ids != data.PAD, labels


def compute_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy in which every class has the same say over all training reviews."""
    return nn.functional.cross_entropy(logits, labels, weight=WEIGHTS.to(logits))


def train(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int) -> list[float]:
    """Take `steps` steps; the loss of each."""
    scheduler = MultiStepLR(optimizer, milestones=[DECAY_AT], gamma=0.1)
    parameters = list(model.parameters())
    losses = []
    for step in range(steps):
        model.train()
        ids, mask, labels = collate(data.draw(step, BATCH_SIZE))
        loss = compute_loss(model(ids, mask), labels)
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, CLIP)
        optimizer.step()
        optimizer.zero_grad()
        scheduler.step()
        losses.append(loss.detach().item())
        if (step + 1) % REPORT_EVERY == 0:
            print(f"step {step + 1}: loss {losses[-1]:.3f}, mean recall {evaluate(model):.3f}")
    return losses


@torch.no_grad()
def predict(model: nn.Module, ids: Tensor, mask: Tensor) -> Tensor:
    """The likeliest class of each row, (B,)."""
    model.eval()
    return model(ids, mask).argmax(dim=-1)


def evaluate(model: nn.Module) -> float:
    """The mean recall over the classes: of each class, the share of its reviews that is found."""
    confusion = torch.zeros(len(data.CLASSES), len(data.CLASSES))
    for first in range(0, len(data.HELD_OUT), BATCH_SIZE):
        ids, mask, labels = collate(data.HELD_OUT[first : first + BATCH_SIZE])
        for label, guess in zip(labels, predict(model, ids, mask)):
            confusion[label, guess] += 1
    recalls = confusion.diag() / confusion.sum(dim=1)
    return recalls.mean().item()


def main() -> None:
    torch.manual_seed(0)
    model = make_model()
    train(model, make_optimizer(model), STEPS)
    print(f"mean recall on held-out reviews: {evaluate(model):.3f}")
    for text in ("the soup was fresh but cold", "awful room but a kind waiter", "a table"):
        ids, mask, _ = collate([(data.encode(text), 0)])
        print(f"{text}: {data.CLASSES[predict(model, ids, mask)]}")


if __name__ == "__main__":
    main()
