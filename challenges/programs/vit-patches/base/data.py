"""Small pictures of a red and a blue square. Nothing here is wrong; not edited."""

import random
from collections.abc import Sequence

import torch
from torch import Tensor

CLASSES = ("left", "right", "above", "below")  # where the blue square is, seen from the red one
CHANNELS, HEIGHT, WIDTH = 3, 12, 16
CELL = 4  # pixels; the picture is a grid of 3 x 4 cells


def _place_squares(dice: random.Random) -> tuple[int, tuple[int, int], tuple[int, int]]:
    """A class, and the top left corners of the red and the blue square."""
    label = dice.randrange(4)
    sideways = label < 2
    line = dice.randrange(HEIGHT // CELL if sideways else WIDTH // CELL)
    first, second = sorted(dice.sample(range(4 if sideways else 3), 2))
    corners = []
    for place in (second, first) if label in (0, 2) else (first, second):
        row, column = (line, place) if sideways else (place, line)
        corners.append((row * CELL + dice.randrange(2), column * CELL + dice.randrange(2)))
    return label, corners[0], corners[1]


def _squares(corners: Sequence[tuple[int, int]]) -> Tensor:
    """True inside a square of 3 x 3 pixels with this corner: (count, height, width)."""
    top, left = torch.tensor(corners).T[..., None]
    rows, columns = torch.arange(HEIGHT) - top, torch.arange(WIDTH) - left
    return ((rows >= 0) & (rows < 3))[:, :, None] & ((columns >= 0) & (columns < 3))[:, None, :]


def _pictures(count: int, seed: int) -> tuple[Tensor, Tensor]:
    dice, generator = random.Random(seed), torch.Generator().manual_seed(seed)
    labels, red, blue = zip(*(_place_squares(dice) for _ in range(count)))
    pictures = 0.3 * torch.rand(count, CHANNELS, HEIGHT, WIDTH, generator=generator)
    pictures[:, 0] += 0.7 * _squares(red)
    pictures[:, 2] += 0.7 * _squares(blue)
    return pictures, torch.tensor(labels)


TRAINING = _pictures(600, 31)  # pictures (count, channels, height, width) and labels (count,)
HELD_OUT = _pictures(100, 32)


def draw(step: int, count: int) -> tuple[Tensor, Tensor]:
    """The numbers of `count` training pictures, and for each whether it is mirrored; always the
    same for the same step."""
    generator = torch.Generator().manual_seed(300 + step)
    numbers = torch.randint(len(TRAINING[1]), (count,), generator=generator)
    return numbers, torch.rand(count, generator=generator) < 0.5
