"""Walks over the seven notes, `C +2 x3 : E G B .`: given, nothing here is wrong, and not edited."""

import torch
from torch import Tensor

PADDING = 0  # the id that fills short rows
NOTES = list("CDEFGAB")
STRIDES, COUNTS = range(1, 4), range(1, 8)  # notes to go up each time, and how often
TOKENS = ["_", *NOTES, *(f"+{n}" for n in STRIDES), *(f"x{n}" for n in COUNTS), ":", "."]
ID = {token: number for number, token in enumerate(TOKENS)}
END = ID["."]
QUESTION = 4  # tokens of a question: the first note, the stride, how often, and a colon


def encode(text: str) -> Tensor:
    """The ids of the tokens of a text, (length,)."""
    return torch.tensor([ID[token] for token in text.split()])


def decode(ids: Tensor) -> str:
    return " ".join(TOKENS[number] for number in ids.tolist())


def walk(first: int, stride: int, count: int) -> str:
    """The question and its answer: `count` notes, and the end."""
    notes = [NOTES[(first + stride * n) % len(NOTES)] for n in range(count + 1)]
    return " ".join([notes[0], f"+{stride}", f"x{count}", ":", *notes[1:], "."])


def _all_walks() -> list[str]:
    walks = [
        walk(first, stride, count)
        for first in range(len(NOTES))
        for stride in STRIDES
        for count in COUNTS
    ]
    order = torch.randperm(len(walks), generator=torch.Generator().manual_seed(11))
    return [walks[number] for number in order.tolist()]


_walks = _all_walks()
HELD_OUT, TRAINING = _walks[:30], _walks[30:]  # no walk of one is in the other


def draw(step: int, count: int) -> list[str]:
    """The `count` walks of a step; always the same for the same step."""
    generator = torch.Generator().manual_seed(300 + step)
    return [TRAINING[n] for n in torch.randint(len(TRAINING), (count,), generator=generator)]
