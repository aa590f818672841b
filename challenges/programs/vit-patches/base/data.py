"""Small pictures of a red and a blue square. Nothing here is wrong; not edited."""

import torch
from torch import Tensor

CLASSES = ("left", "right", "above", "below")  # where the blue square is, seen from the red one
CHANNELS, HEIGHT, WIDTH = 3, 12, 16
CELL = 4  # pixels; the picture is a grid of 3 x 4 cells


def _picture(generator: torch.Generator) -> tuple[Tensor, int]:
    def dice(sides: int) -> int:
        return int(torch.randint(sides, (), generator=generator))

    picture = 0.3 * torch.rand(CHANNELS, HEIGHT, WIDTH, generator=generator)
    label = dice(4)
    sideways = label < 2
    line = dice(HEIGHT // CELL if sideways else WIDTH // CELL)
    first, second = torch.randperm(4 if sideways else 3, generator=generator)[:2].sort().values
    red, blue = (second, first) if label in (0, 2) else (first, second)
    for channel, place in ((0, int(red)), (2, int(blue))):
        row, column = (line, place) if sideways else (place, line)
        top, left = row * CELL + dice(2), column * CELL + dice(2)
        picture[channel, top : top + 3, left : left + 3] += 0.7
    return picture, label


def _pictures(count: int, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    pictures, labels = zip(*(_picture(generator) for _ in range(count)))
    return torch.stack(pictures), torch.tensor(labels)


TRAINING = _pictures(600, 31)  # pictures (count, channels, height, width) and labels (count,)
HELD_OUT = _pictures(100, 32)


def draw(step: int, count: int) -> tuple[Tensor, Tensor]:
    """The numbers of `count` training pictures, and for each whether it is mirrored; always the
    same for the same step."""
    generator = torch.Generator().manual_seed(300 + step)
    numbers = torch.randint(len(TRAINING[1]), (count,), generator=generator)
    return numbers, torch.rand(count, generator=generator) < 0.5
