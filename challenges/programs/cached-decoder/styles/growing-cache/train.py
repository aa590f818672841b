"""The same training with LambdaLR, averages in a dict, and a loss that is written out."""

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.optim.lr_scheduler import LambdaLR

import data
from model import CachedDecoder

CONTEXT = 32
BATCH_SIZE = 24
STEPS = 150
LR = 5e-3
MAX_NORM = 1.0
KEEP = 0.9
IGNORE = -100


def make_model():
    return CachedDecoder(len(data.TOKENS), CONTEXT)


def make_optimizer(model):
    return torch.optim.Adam(model.parameters(), lr=LR, betas=(0.9, 0.95))


def collate(walks):
    ids = pad_sequence([data.encode(walk) for walk in walks], batch_first=True)
    targets = ids[:, 1:].masked_fill(ids[:, 1:] == data.PADDING, IGNORE)
    targets[:, : data.QUESTION - 1] = IGNORE
    return ids[:, :-1], targets


def sum_of_losses(model, inputs, targets):
    asked = targets != IGNORE
    logs = model(inputs)[asked].log_softmax(dim=-1)
    return -logs.gather(1, targets[asked][:, None]).sum(), int(asked.sum())


def train(model, optimizer, steps):
    model.train()
    averages = {name: value.clone() for name, value in model.state_dict().items()}
    schedule = LambdaLR(optimizer, lambda step: 1 - step / steps)
    losses = []
    for step in range(steps):
        total, asked = sum_of_losses(model, *collate(data.draw(step, BATCH_SIZE)))
        loss = total / asked
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
        optimizer.step()
        schedule.step()
        for name, value in model.state_dict().items():
            averages[name] = KEEP * averages[name] + (1 - KEEP) * value
        losses.append(float(loss.detach()))
    model.load_state_dict(averages)
    return losses


@torch.no_grad()
def evaluate(model):
    model.eval()
    total, asked = sum_of_losses(model, *collate(data.HELD_OUT))
    return (total / asked).exp().item()


@torch.no_grad()
def generate(model, ids, count):
    model.eval()
    caches = model.new_caches(len(ids), ids.shape[1] + count)
    ended = (ids == data.END).any(dim=1)
    logits = model(ids, caches)
    for _ in range(count):
        token = torch.where(ended, data.PADDING, logits[:, -1].argmax(dim=-1))
        ended |= token == data.END
        ids = torch.cat([ids, token[:, None]], dim=1)
        logits = model(token[:, None], caches)
    return ids


def main():
    torch.manual_seed(0)
    model = make_model()
    train(model, make_optimizer(model), STEPS)
    print(f"perplexity: {evaluate(model):.3f}")
    for walk in data.HELD_OUT[:8]:
        question = data.encode(walk)[None, : data.QUESTION]
        print(walk, "|", data.decode(generate(model, question, 8)[0]))


if __name__ == "__main__":
    main()
