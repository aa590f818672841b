"""The same training with the smoothing of the library and a rate that is set by hand."""

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


def train_step(model, optimizer, words, rate):
    model.train()
    optimizer.zero_grad()
    source, written, targets = collate(words)
    loss = F.cross_entropy(
        model(source, written).flatten(0, 1),
        targets.flatten(),
        ignore_index=data.PAD,
        label_smoothing=SMOOTHING,
    )
    loss.backward()
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.step()
    return loss.item()


def train(model, optimizer, steps):
    rates = [RATE * min(1.0, n / WARM_UP) for n in range(1, steps + 1)]
    return [train_step(model, optimizer, data.draw(n, WORDS), r) for n, r in enumerate(rates)]


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
    written = source.new_full((source.shape[0], count + 1), data.PAD)
    written[:, 0] = data.START
    writing = torch.ones(source.shape[0], dtype=torch.bool)
    for n in range(count):
        best = model.decode(written[:, : n + 1], memory, source)[:, n].argmax(dim=-1)
        written[writing, n + 1] = best[writing]
        writing &= best != data.END
    return written[:, 1:]


def main():
    torch.manual_seed(0)
    model = make_model()
    losses = train(model, make_optimizer(model), STEPS)
    print(f"loss {losses[0]:.3f} to {losses[-1]:.3f}, evaluation {evaluate(model):.3f}")
    for word in data.HELD_OUT[:8]:
        print(word, data.decode(generate(model, data.encode(word)[None], 6)[0]))


if __name__ == "__main__":
    main()
