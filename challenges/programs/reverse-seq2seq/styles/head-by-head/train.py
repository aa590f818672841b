"""The same training with targets as shares, and a schedule of the library."""

import torch
import torch.nn.functional as F

import data
from model import Seq2Seq

STEPS = 120
WORDS = 32
RATE = 4e-3
WARM_UP = 10
SMOOTHING = 0.05
LONGEST = 16


def make_model():
    return Seq2Seq(data.VOCABULARY, LONGEST)


def make_optimizer(model):
    return torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.95), weight_decay=0.01)


def collate(words):
    longest = max(map(len, words)) + 1
    source = torch.full((len(words), longest), data.PAD)
    answer = torch.full((len(words), longest + 1), data.PAD)
    answer[:, 0] = data.START
    for row, word in enumerate(words):
        source[row, : len(word) + 1] = data.encode(word)
        answer[row, 1 : len(word) + 2] = data.encode(word[::-1])
    written = answer[:, :-1].masked_fill(answer[:, :-1] == data.END, data.PAD)
    return source, written, answer[:, 1:]


def shares_of(targets):
    """What each class should get of each place."""
    right = F.one_hot(targets, data.VOCABULARY)
    return (1 - SMOOTHING) * right + SMOOTHING / data.VOCABULARY


def loss_of(logits, targets):
    real = targets != data.PAD
    return F.cross_entropy(logits[real], shares_of(targets[real]).to(logits))


def train(model, optimizer, steps):
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1 / WARM_UP, 1.0, WARM_UP - 1)
    losses = []
    for step in range(steps):
        model.train()
        source, written, targets = collate(data.draw(step, WORDS))
        loss = loss_of(model(source, written), targets)
        model.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses


@torch.inference_mode()
def evaluate(model):
    model.eval()
    source, written, targets = collate(data.HELD_OUT)
    costs = F.cross_entropy(model(source, written).mT, targets, ignore_index=0, reduction="none")
    return -costs.sum(dim=1).mean().item()


@torch.inference_mode()
def generate(model, source, count):
    model.eval()
    memory = model.encode(source)
    rows = []
    for words, state in zip(source.unsqueeze(1), memory.unsqueeze(1)):
        ids = [data.START]
        while ids[-1] != data.END and len(ids) <= count:
            logits = model.decode(torch.tensor([ids]), state, words)
            ids.append(int(logits[0, -1].argmax()))
        rows.append(torch.tensor(ids[1:] + [data.PAD] * (count + 1 - len(ids))))
    return torch.stack(rows)


def main():
    torch.manual_seed(0)
    model = make_model()
    losses = train(model, make_optimizer(model), STEPS)
    print(f"loss {losses[0]:.3f} to {losses[-1]:.3f}, evaluation {evaluate(model):.3f}")
    for word in data.HELD_OUT[:8]:
        print(word, data.decode(generate(model, data.encode(word)[None], 6)[0]))


if __name__ == "__main__":
    main()
