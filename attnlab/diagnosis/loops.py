"""What a loop computes piece by piece, as the one value that others compute at once.

A step that runs for each head, row or token gives pieces; joined, they are what a file without the
loop has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import torch
from torch import Tensor

from attnlab.candidate.value_recorder import Value

MOST_PIECES = 256
MOST_NUMBERS = 1 << 20  # in all pieces of a step


def loops(values: Sequence[Value]) -> Iterator[list[int]]:
    """The results of each step that runs more than once, called from the same lines."""
    lines: dict[tuple[object, ...], list[int]] = {}
    for index, v in enumerate(values):
        if v.call >= 0:
            lines.setdefault((v.file, v.line, *v.callers), []).append(index)
    for made in lines.values():
        each = _steps_of_a_turn([(values[i].op, values[i].slot) for i in made])
        for first in range(each):
            pieces = made[first::each]
            room = sum(values[i].numbers.numel() for i in pieces) <= MOST_NUMBERS
            if 2 <= len(pieces) <= MOST_PIECES and values[pieces[0]].numbers.dim() and room:
                yield pieces


def inner_loops(values: Sequence[Value]) -> Iterator[list[int]]:
    """The results of each step that a loop inside of another one runs, as for each head of a layer:
    a list for each turn of the outer one, between which something runs further out."""
    for pieces in loops(values):
        out = [min(len(values[i].callers) for i in range(*gap)) for gap in pairwise(pieces)]
        if min(out) < max(out):
            ends = [at + 1 for at, depth in enumerate(out) if depth == min(out)]
            parts = [pieces[a:b] for a, b in pairwise([0, *ends, len(pieces)])]
            if len({len(part) for part in parts}) == 1 and len(parts[0]) > 1:
                yield from parts


def _steps_of_a_turn(ops: Sequence[tuple[str, int]]) -> int:
    """How many steps of a line follow each other until they repeat: two products of one call of
    attention are not one step that runs twice."""
    many = len(ops)
    turns = (n for n in range(1, many) if many % n == 0 and ops[n:] == ops[:-n])
    return next(turns, many)


def join(pieces: Sequence[Tensor]) -> Iterator[Tensor]:
    """The pieces side by side along a new first axis, short ones filled up with what is masked; and
    those of unequal lengths end to end."""
    shapes = {piece.shape for piece in pieces}
    if len({len(shape) for shape in shapes}) != 1:
        return
    full = [max(sizes) for sizes in zip(*shapes, strict=True)]
    uneven = {a for shape in shapes for a, size in enumerate(shape) if size != full[a]}
    if len(uneven) > 1:
        return
    wide = [piece.double() for piece in pieces]
    for axis in uneven:
        yield torch.cat(wide, axis)
    low = -torch.inf if uneven and min(float(p.min()) for p in wide if p.numel()) < 0 else 0.0
    whole = wide[0].new_full((len(wide), *full), low)
    for into, piece in zip(whole, wide, strict=True):
        into[tuple(map(slice, piece.shape))] = piece
    yield whole


def with_wholes(values: Sequence[Value]) -> tuple[list[Value], dict[int, list[int]]]:
    """The values, and after them those that pieces make; and of which pieces these are made."""
    found, made_of = list(values), dict[int, list[int]]()
    for each in (loops, inner_loops):
        whole_of: dict[int, list[int]] = {}
        for pieces in each(values):
            last = values[pieces[-1]]
            sources = {j for i in pieces for j in values[i].inputs}
            taken = sorted({w for j in sources for w in whole_of.get(j, [j])})
            for numbers in join([values[i].numbers for i in pieces]):
                made_of[len(found)] = pieces
                found.append(replace(last, inputs=taken, numbers=numbers))
            for i in pieces:
                whole_of[i] = [w for w, parts in made_of.items() if parts is pieces]
    return found, made_of
