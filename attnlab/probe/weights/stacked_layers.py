"""Parameters of the reference that one parameter of the module may hold one after the other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attnlab.probe.weights.roles import Piece, Slot

NUMBER = re.compile(r"\d+")
MOST_JOINED = 6  # layers in one


def stacked_groups(slot: Slot, parts: Sequence[Piece]) -> Iterator[tuple[Piece, ...]]:
    """The layers of a list, as in `experts.0`, `experts.1`; or all pieces of one role and kind, as
    the gains of all norms: as many as the slot's first axis is long."""
    if not slot.shape:
        return
    series: dict[tuple[object, ...], list[Piece]] = {}
    for piece in parts:
        if piece.shape and piece.shape[0] and not slot.per:
            for number in NUMBER.finditer(piece.parameter):
                name = piece.parameter
                key = name[: number.start()], name[number.end() :]
                series.setdefault((*key, piece.shape), []).append(piece)
            stem, _, last = piece.parameter.rpartition(".")
            if stem and last in ("weight", "bias"):  # the gain and the shift of a norm
                series.setdefault((stem, piece.shape), []).append(piece)
            if piece.parsed.role:
                role = piece.parsed.role, piece.parsed.kind, piece.shape
                series.setdefault(role, []).append(piece)
    for group in series.values():
        fits = prod(group[0].shape) * len(group) == prod(slot.shape)
        if fits and len(group) == slot.shape[0] > 1:
            yield tuple(group)


def joined_groups(slot: Slot, parts: Sequence[Piece]) -> Iterator[tuple[Piece, ...]]:
    """Layers that are defined one after the other, and have as many rows together as the slot."""
    alike: dict[tuple[object, ...], list[Piece]] = {}
    for piece in parts:
        if piece.shape and not slot.per:
            alike.setdefault((piece.parsed.kind, piece.shape[1:]), []).append(piece)
    for pieces in alike.values():
        for first in range(len(pieces)):
            for many in range(2, MOST_JOINED + 1):
                group = tuple(pieces[first : first + many])
                if sum(prod(piece.shape) for piece in group) == prod(slot.shape):
                    yield group
