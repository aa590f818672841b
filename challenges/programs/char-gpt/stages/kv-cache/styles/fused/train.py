"""Train the model until it knows eight lines by heart, then let it recite: python train.py"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

import data
from cache import KVCache
from model import GPT

CONTEXT = 40
BATCH = 4
STEPS = 120
LEARNING_RATE = 3e-3
WEIGHT_DECAY = 0.1
CLIP = 1.0
EVALUATE_EVERY = 40
IGNORED = -100  # the target of what is padding


def make_model() -> GPT:
    return GPT(len(data.CHARACTERS), CONTEXT, width=64, heads=4, layers=2, dropout=0.05)


def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    """AdamW; matrices decay, biases and the gains of norms do not."""
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    groups = [
        {"params": matrices, "weight_decay": WEIGHT_DECAY},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=LEARNING_RATE)


def make_batch(lines: list[int]) -> tuple[Tensor, Tensor]:
    """Inputs and their targets, the characters that follow: both (batch, longest - 1)."""
    ids = pad_sequence([data.IDS[line] for line in lines], True, data.PADDING)
    inputs, targets = ids[:, :-1], ids[:, 1:]
    return inputs, targets.masked_fill(targets == data.PADDING, IGNORED)


def compute_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Mean cross-entropy over the characters of the batch that are no padding."""
    return F.cross_entropy(
        logits.reshape(-1, logits.size(-1)), targets.reshape(-1), ignore_index=IGNORED
    )


def train(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int) -> list[float]:
    """Take `steps` steps; the loss before each."""
    losses = []
    for step in range(steps):
        model.train()
        inputs, targets = make_batch(data.draw(step, BATCH))
        loss = compute_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        losses.append(loss.item())
        if (step + 1) % EVALUATE_EVERY == 0:
            print(f"step {step + 1}: loss {losses[-1]:.3f}, all lines {evaluate(model):.3f}")
    return losses


@torch.no_grad()
def evaluate(model: nn.Module) -> float:
    """Mean loss over every character of every line but the first of each."""
    model.eval()
    total, count = 0.0, 0
    for line in range(len(data.IDS)):
        inputs, targets = make_batch([line])
        total += compute_loss(model(inputs), targets).item() * targets.numel()
        count += targets.numel()
    return total / count


@torch.no_grad()
def generate(model: nn.Module, ids: Tensor, count: int) -> Tensor:
    """`ids` (batch, length) and `count` more, each the likeliest: (batch, length + count)."""
    model.eval()
    cache = None
    for _ in range(count):
        window = ids[:, -CONTEXT:]
        if cache is None or ids.size(1) > CONTEXT:
            cache = KVCache(len(model.blocks))
            logits = model(window, cache)
        else:
            logits = model(window[:, -1:], cache)
        ids = torch.cat([ids, logits[:, -1].argmax(dim=-1, keepdim=True)], dim=1)
    return ids


def main() -> None:
    torch.manual_seed(0)
    model = make_model()
    train(model, make_optimizer(model), STEPS)
    print(f"loss over all lines: {evaluate(model):.3f}")
    for ids in data.IDS:
        print(data.decode(generate(model, ids[:1].unsqueeze(0), CONTEXT)[0]).partition("\n")[0])


if __name__ == "__main__":
    main()
