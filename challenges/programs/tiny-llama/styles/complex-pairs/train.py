"""Sort digits with a small Llama: the data set, the schedule and the loop are written apart."""

import math

import torch
import torch.nn.functional as F

import data
from model import Config, Llama

STEPS = 120
BATCH = 32
MICRO_BATCH = 16
PEAK_LR = 8e-3
WARM_UP = 15
DECAY_UNTIL = STEPS
FLOOR = 0.1
WEIGHT_DECAY = 0.05
CLIP = 1.0
EVALUATE_EVERY = 40
IGNORED = -100


def make_model():
    return Llama(Config(vocab=len(data.SYMBOLS)))


def make_optimizer(model):
    decayed, plain = [], []
    for parameter in model.parameters():
        (plain if parameter.ndim == 1 else decayed).append(parameter)
    return torch.optim.AdamW(
        [
            {"params": decayed, "weight_decay": WEIGHT_DECAY},
            {"params": plain, "weight_decay": 0.0},
        ],
        lr=PEAK_LR,
        betas=(0.9, 0.95),
    )


def get_lr(step):
    if step < WARM_UP:
        return PEAK_LR * (step + 1) / WARM_UP
    if step >= DECAY_UNTIL:
        return PEAK_LR * FLOOR
    ratio = (step - WARM_UP) / (DECAY_UNTIL - WARM_UP)
    lowest = PEAK_LR * FLOOR
    return lowest + 0.5 * (1.0 + math.cos(math.pi * ratio)) * (PEAK_LR - lowest)


def encode_line(line):
    """Inputs and labels of one line, without padding."""
    tokens = data.encode(line).tolist()
    question = line.index("=")
    labels = [IGNORED] * question + tokens[question + 1 :]
    return tokens[:-1], labels


def collate(lines):
    rows = [encode_line(line) for line in lines]
    longest = max(len(tokens) for tokens, _ in rows)
    inputs = torch.full((len(rows), longest), data.PADDING)
    labels = torch.full((len(rows), longest), IGNORED)
    for i, (tokens, targets) in enumerate(rows):
        inputs[i, : len(tokens)] = torch.tensor(tokens)
        labels[i, : len(targets)] = torch.tensor(targets)
    return inputs, labels


def train(model, optimizer, steps):
    losses = []
    model.train()
    optimizer.zero_grad()
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = get_lr(step)
        lines = data.draw(step, BATCH)
        # what is to be predicted: the answer and the end of each line
        wanted = sum(len(line) - line.index("=") - 1 for line in lines)
        loss_of_step = 0.0
        for start in range(0, BATCH, MICRO_BATCH):
            inputs, labels = collate(lines[start : start + MICRO_BATCH])
            logits = model(inputs)
            loss = F.cross_entropy(logits.transpose(1, 2), labels, reduction="none").sum() / wanted
            loss.backward()
            loss_of_step += loss.detach()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=CLIP)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss_of_step.item())
    return losses


def evaluate(model):
    was_training = model.training
    model.eval()
    with torch.no_grad():
        inputs, labels = collate(data.HELD_OUT)
        hits = model(inputs).argmax(-1).eq(labels)
    model.train(was_training)
    return hits.sum().item() / labels.ne(IGNORED).sum().item()


def generate(model, ids, count):
    model.eval()
    done = (ids == data.END).any(-1)
    with torch.no_grad():
        for _ in range(count):
            token = model(ids)[:, -1, :].argmax(-1)
            token = torch.where(done, data.PADDING, token)
            done = done | (token == data.END)
            ids = torch.cat((ids, token.unsqueeze(-1)), dim=-1)
    return ids


if __name__ == "__main__":
    torch.manual_seed(0)
    llama = make_model()
    train(llama, make_optimizer(llama), STEPS)
    print(f"accuracy on held-out lines: {evaluate(llama):.3f}")
