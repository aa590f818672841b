"""Parameters of the reference whose rows several parameters of the module share, though no name
says so: the gate and what it opens in one layer, what a scan takes of its input in another, a
scale for each of several blocks in a matrix."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, permutations

from attnlab.probe.weights.roles import Piece, Slot, layer_name

MOST = 3  # kinds of layers that are cut at a time
LIKELY = 24  # ways to cut one kind that are looked at together
WAYS = 12  # to cut them
ORDERS = 4  # in which unequal parts may lie
UNEQUAL = 4  # parts

Signature = tuple[int, ...]
Rows = tuple[int, ...]  # of each part


def with_cuts(parts: tuple[Piece, ...], places: Sequence[Slot]) -> list[tuple[Piece, ...]]:
    """The pieces, where those of some kinds of layers are cut along their first axis so that more
    of them have the shape of a parameter of the module. A kind is the same name but for numbers."""
    there = Counter(_signature(place.shape) for place in places)
    kinds: dict[str, list[Piece]] = {}
    for piece in parts:
        if piece.shape and piece.expression == piece.parameter and not piece.parsed.letters:
            kinds.setdefault(re.sub(r"\d+", "#", _layer(piece)), []).append(piece)
    given = Counter(_signature(piece.shape) for piece in parts)
    before = _unlike(given, there)
    ways = {
        (name, rows): _cut(parts, {name: rows})
        for name, kind in kinds.items()
        for rows in _rows(*_matrix(kind), there)
    }
    change = {way: Counter(_signature(p.shape) for p in cut) for way, cut in ways.items()}
    for counts in change.values():
        counts.subtract(given)
    alone = sorted(ways, key=lambda way: _unlike(given, there, change[way]))[:LIKELY]
    found = [
        (unlike, chosen)
        for many in range(1, MOST + 1)
        for chosen in combinations(alone, many)
        if len({name for name, _ in chosen}) == many
        and (unlike := _unlike(given, there, *(change[way] for way in chosen))) < before
    ]
    found.sort(key=lambda each: each[0])
    return [_cut(parts, dict(chosen)) for _, chosen in found[:WAYS]]


def _unlike(
    given: Counter[Signature], there: Counter[Signature], *changes: Counter[Signature]
) -> int:
    """How many pieces and parameters are left without one of their shape."""
    now = Counter(given)
    for change in changes:
        now.update(change)
    return (now - there).total() + (there - now).total()


def _matrix(kind: list[Piece]) -> tuple[Piece, int]:
    """The weight of a layer, not its bias, and how many layers there are."""
    matrix = max(kind, key=lambda piece: len(piece.shape))
    return matrix, len({_layer(piece) for piece in kind})


def _rows(piece: Piece, many: int, there: Mapping[Signature, int]) -> Iterator[Rows]:
    """The rows of each part, so that there are parameters for the parts of so many layers."""
    rows, rest = piece.shape[0], piece.shape[1:]

    def room(n: int) -> int:
        return there.get(_signature((n, *rest)), 0) // many

    counts = [n for n in range(2, rows + 1) if rows % n == 0 and room(rows // n) >= n]
    yield from ((rows // n,) * n for n in counts[:1] if rest or n < rows)
    sizes = sorted({n for signature in there for n in signature if n < rows and room(n)})
    bag = [n for n in sizes for _ in range(min(room(n), UNEQUAL))]
    groups = {g for n in range(2, UNEQUAL + 1) for g in combinations(bag, n) if sum(g) == rows}
    for group in sorted(groups, key=len):
        if len(set(group)) > 1:
            yield from sorted(set(permutations(group)))[:ORDERS]


def _cut(parts: tuple[Piece, ...], rows: Mapping[str, Rows]) -> tuple[Piece, ...]:
    found: list[Piece] = []
    for piece in parts:
        cut = rows.get(re.sub(r"\d+", "#", _layer(piece)), ())
        fits = piece.shape and piece.shape[0] == sum(cut)
        for each in _pieces(piece, cut) if fits else (piece,):
            found.append(each._replace(order=len(found)))
    return tuple(found)


def _pieces(piece: Piece, rows: Rows) -> Iterator[Piece]:
    start = 0
    for index, many in enumerate(rows):
        equal = f"part({piece.expression}, {index}, {len(rows)})"
        own = f"rows({piece.expression}, {start}, {start + many})"
        yield piece._replace(
            expression=equal if len(set(rows)) == 1 else own, shape=(many, *piece.shape[1:])
        )
        start += many


def _layer(piece: Piece) -> str:
    return layer_name(piece.parameter) or piece.parameter


def _signature(shape: tuple[int, ...]) -> Signature:
    return tuple(sorted(n for n in shape if n != 1))
