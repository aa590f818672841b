"""Parameters of the reference that one parameter of the module may hold one after the other."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice, permutations
from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attnlab.probe.weights.roles import Piece, Slot

NUMBER = re.compile(r"\d+")
IN_LIST = re.compile(r"(?<=\.)\d+(?=\.)")
MOST_JOINED = 6  # layers in one
MOST_OF_EACH, MOST_ORDERS = 4, 24  # parameters of each layer in one, and orders of them


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
    if len(slot.shape) > 1:
        yield from _several_of_each(slot, parts)


def _several_of_each(slot: Slot, parts: Sequence[Piece]) -> Iterator[tuple[Piece, ...]]:
    """Several parameters of each layer of a list, as the gate and what it opens of all experts, or
    the queries, keys and values of all layers: one layer after the other."""
    lists: dict[tuple[object, ...], dict[str, list[Piece]]] = {}
    for piece in parts:
        if number := NUMBER.search(piece.parameter):
            key = piece.parameter[: number.start()], piece.shape, piece.parsed.kind
            lists.setdefault(key, {}).setdefault(number[0], []).append(piece)
    for layers in lists.values():
        first, many = next(iter(layers.values())), len(layers)
        each, rest = divmod(prod(slot.shape), many * prod(first[0].shape))
        alike = all(len(pieces) == len(first) for pieces in layers.values())
        if rest or not 1 < each <= MOST_OF_EACH or many not in slot.shape[:2] or not alike:
            continue
        for order in islice(permutations(range(len(first)), each), MOST_ORDERS):
            yield tuple(pieces[i] for pieces in layers.values() for i in order)


def joined_groups(slot: Slot, parts: Sequence[Piece]) -> Iterator[tuple[Piece, ...]]:
    """Layers that are defined one after the other, and have as many rows together as the slot; of
    each list one, or all."""
    lists = Counter(_in_list(piece) for piece in parts)
    alike: dict[tuple[object, ...], list[Piece]] = {}
    for piece in parts:
        if piece.shape and not slot.per:
            alike.setdefault((piece.parsed.kind, piece.shape[1:]), []).append(piece)
    for pieces in alike.values():
        for first in range(len(pieces)):
            for many in range(2, MOST_JOINED + 1):
                group = tuple(pieces[first : first + many])
                if sum(prod(piece.shape) for piece in group) == prod(slot.shape):
                    taken = Counter(_in_list(piece) for piece in group)
                    if all(n in (1, lists[name]) for name, n in taken.items()):
                        yield group


def _in_list(piece: Piece) -> str:
    """Its name, the same for all layers of a list."""
    return IN_LIST.sub("#", piece.expression)
