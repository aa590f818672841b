"""The same training with averages moved all at once, and a schedule of the library."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn, optim
from torch.optim.swa_utils import AveragedModel

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
    averages = AveragedModel(model, avg_fn=lambda old, new, _: KEEP * old + (1 - KEEP) * new)
    averages.update_parameters(model)  # the first ones are taken as they are
    schedule = optim.lr_scheduler.PolynomialLR(optimizer, total_iters=steps)
    history = []
    model.train()
    for step in range(steps):
        inputs, targets = collate(data.draw(step, BATCH_SIZE))
        loss = loss_of(model, inputs, targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        averages.update_parameters(model)
        history.append(loss.item())
        if step % 50 == 0:
            print(f"step {step}: loss {history[-1]:.3f}")
    model.load_state_dict(averages.module.state_dict())
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

    What is in `ids` is read in one pass, then each new token alone.
    """
    model.eval()
    caches = model.new_caches(ids.size(0), ids.size(1) + count)
    pieces = [ids]
    ended = ids.eq(data.END).any(dim=1, keepdim=True)
    for _ in range(count):
        best = model(pieces[-1], caches)[:, -1:].argmax(dim=-1)
        pieces.append(best * ~ended)  # padding is 0
        ended = ended | best.eq(data.END)
    return torch.cat(pieces, dim=1)


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
