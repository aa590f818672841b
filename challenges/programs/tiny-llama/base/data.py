"""Digits to put in order, `3141=1134.`: given, nothing here is wrong, and it is not edited."""

import torch
from torch import Tensor

PADDING = 0  # the id that fills short rows
SYMBOLS = ["", *"0123456789", "=", "."]
NUMBER = {symbol: number for number, symbol in enumerate(SYMBOLS)}
EQUALS, END = NUMBER["="], NUMBER["."]


def encode(text: str) -> Tensor:
    """The ids of the symbols, (length,)."""
    return torch.tensor([NUMBER[symbol] for symbol in text])


def decode(ids: Tensor) -> str:
    return "".join(SYMBOLS[number] for number in ids.tolist())


def write_line(digits: list[int]) -> str:
    """The digits, then the same ones in ascending order."""
    return "".join(map(str, digits)) + "=" + "".join(map(str, sorted(digits))) + "."


_generator = torch.Generator().manual_seed(7)
_digits = torch.randint(0, 10, (1000, 4), generator=_generator).tolist()
_counts = torch.randint(2, 5, (1000,), generator=_generator).tolist()
_lines = list(dict.fromkeys(write_line(row[:n]) for row, n in zip(_digits, _counts)))
HELD_OUT, TRAINING = _lines[:60], _lines[60:]  # no line of one is in the other


def draw(step: int, count: int) -> list[str]:
    """The `count` lines of a step; always the same for the same step."""
    generator = torch.Generator().manual_seed(2000 + step)
    return [TRAINING[n] for n in torch.randperm(len(TRAINING), generator=generator)[:count]]
