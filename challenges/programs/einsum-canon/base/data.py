"""Canons: every bar is the one before it, moved up. Given: nothing here is wrong, or edited."""

import torch
from torch import Tensor

PITCHES = ("C", "D", "E", "F", "G", "A", "B")
MOVES = (1, 2, 4)  # steps of the scale from a bar to the next
SILENCE = len(PITCHES) + len(MOVES)  # fills short tunes; ids 7, 8 and 9 are the moves
SIGNS = (*PITCHES, *(f"+{move}:" for move in MOVES), ".")
BAR = 4  # notes
MOST_BARS = 4
LENGTH = 1 + BAR * MOST_BARS


def compose(dice: torch.Generator) -> Tensor:
    """The move, then two to four bars, of which the first is free: ids (9,) to (17,)."""
    move = int(torch.randint(len(MOVES), (), generator=dice))
    bars = int(torch.randint(2, MOST_BARS + 1, (), generator=dice))
    first = torch.randint(len(PITCHES), (BAR,), generator=dice)
    rest = [(first + MOVES[move] * bar) % len(PITCHES) for bar in range(bars)]
    return torch.cat([torch.tensor([len(PITCHES) + move]), *rest])


def draw(step: int, count: int) -> list[Tensor]:
    """The tunes of a step; always the same for the same step."""
    dice = torch.Generator().manual_seed(1000 + step)
    return [compose(dice) for _ in range(count)]


HELD_OUT = draw(-1, 50)


def spell(ids: Tensor) -> str:
    return " ".join(SIGNS[number] for number in ids.tolist())
