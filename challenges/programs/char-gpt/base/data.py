"""The lines to learn, as characters. Given: nothing here is wrong, and it is not edited."""

import torch
from torch import Tensor

LINES = (
    "a lighthouse keeper counts the ships\n",
    "bread rises while the baker sleeps\n",
    "coal fires warm the north hall\n",
    "dust settles on unread letters\n",
    "every tide returns a bottle\n",
    "foxes cross the frozen lake\n",
    "green lamps mark the harbour wall\n",
    "hens know the hour\n",
)
PADDING = 0  # the id that fills short rows
CHARACTERS = ["", *sorted(set("".join(LINES)))]
NUMBER = {character: number for number, character in enumerate(CHARACTERS)}


def encode(text: str) -> Tensor:
    """The ids of the characters, (length,)."""
    return torch.tensor([NUMBER[character] for character in text])


def decode(ids: Tensor) -> str:
    return "".join(CHARACTERS[number] for number in ids.tolist())


IDS = [encode(line) for line in LINES]


def draw(step: int, count: int) -> list[int]:
    """The numbers of the `count` lines of a step; always the same for the same step."""
    generator = torch.Generator().manual_seed(1000 + step)
    return torch.randperm(len(LINES), generator=generator)[:count].tolist()
