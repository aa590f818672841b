"""Parameters of the reference whose rows several parameters of the module share, though no name
says so: the gate and what it opens in one layer, what a scan takes of its input in another, a
scale for each of several blocks in a matrix."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, combinations_with_replacement, islice, permutations
from math import prod
from typing import NamedTuple

from attnlab.probe.weights.roles import Piece, Slot, layer_name

MOST = 3  # kinds of layers that are cut at a time
LIKELY = 24  # ways to cut one kind that are looked at together
WAYS = 12  # to cut them
ORDERS = 4  # in which unequal parts may lie
UNEQUAL, FEW = 4, 12  # parts, where there are no more sizes than a few; else two
OF_KIND = 8  # ways to cut one kind
HEADS = {"H", "Hkv"}

Numbers = Counter[int]  # how many pieces, or parameters, hold so many numbers


class Cut(NamedTuple):
    """The rows of each part; of each of several equal blocks, where a symbol counts these."""

    rows: tuple[int, ...]
    by: str = ""


def with_cuts(
    parts: tuple[Piece, ...], places: Sequence[Slot], sizes: Mapping[str, int]
) -> list[tuple[Piece, ...]]:
    """The pieces, where those of some kinds of layers are cut along their first axis so that more
    of them are as large as a parameter of the module. A kind is the same name but for numbers."""
    there = Counter(prod(place.shape) * sizes.get(place.per, 1) for place in places)
    kinds: dict[str, list[Piece]] = {}
    for piece in parts:
        if piece.shape and piece.expression == piece.parameter:
            kinds.setdefault(re.sub(r"\d+", "#", _layer(piece)), []).append(piece)
    given = Counter(prod(piece.shape) for piece in parts)
    before = _unlike(given, there)
    ways = {
        (name, cut): _with_cut(parts, {name: cut}, sizes)
        for name, kind in kinds.items()
        for by in sorted(("", *sizes.keys() & HEADS), reverse=bool(kind[0].parsed.letters))
        for cut in islice(_cuts(*_matrix(kind), there, by, sizes.get(by, 1)), OF_KIND)
    }
    change = {way: Counter(prod(p.shape) for p in cut) for way, cut in ways.items()}
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
    return [_with_cut(parts, dict(chosen), sizes) for _, chosen in found[:WAYS]]


def _unlike(given: Numbers, there: Numbers, *changes: Numbers) -> int:
    """How many pieces and parameters are left without one of their size."""
    now = Counter(given)
    for change in changes:
        now.update(change)
    return (now - there).total() + (there - now).total()


def _matrix(kind: list[Piece]) -> tuple[Piece, int]:
    """The weight of a layer, not its bias, and how many layers there are."""
    matrix = max(kind, key=lambda piece: len(piece.shape))
    return matrix, len({_layer(piece) for piece in kind})


def _cuts(piece: Piece, many: int, there: Numbers, by: str, blocks: int) -> Iterator[Cut]:
    """The cuts for whose parts, of so many layers, there are parameters."""
    rows, rest = piece.shape[0] // blocks, prod(piece.shape[1:])
    if piece.shape[0] % blocks or not rest:
        return

    def room(n: int) -> int:
        return there.get(n * blocks * rest, 0) // many

    counts = [n for n in range(2, rows + 1) if rows % n == 0 and room(rows // n) >= n]
    for n in counts[:1]:
        if len(piece.shape) > 1 or n < rows:
            yield Cut((rows // n,) * n, by)
    if len(piece.shape) == 1:  # a bias is cut as its weight is
        return
    sizes = sorted({n // (blocks * rest) for n in there if n % (blocks * rest) == 0})
    sizes = [n for n in sizes if n < rows and room(n)]
    for many_parts in range(2, (UNEQUAL if len(sizes) <= FEW else 2) + 1):
        for group in combinations_with_replacement(sizes, many_parts):
            fits = sum(group) == rows and len(set(group)) > 1
            if fits and all(group.count(n) <= room(n) for n in set(group)):
                yield from (Cut(rows, by) for rows in sorted(set(permutations(group)))[:ORDERS])


def _with_cut(
    parts: tuple[Piece, ...], cuts: Mapping[str, Cut], sizes: Mapping[str, int]
) -> tuple[Piece, ...]:
    found: list[Piece] = []
    for piece in parts:
        cut = cuts.get(re.sub(r"\d+", "#", _layer(piece)))
        fits = cut and piece.shape and piece.shape[0] == sum(cut.rows) * sizes.get(cut.by, 1)
        for each in _pieces(piece, cut, sizes) if cut and fits else (piece,):
            found.append(each._replace(order=len(found)))
    return tuple(found)


def _pieces(piece: Piece, cut: Cut, sizes: Mapping[str, int]) -> Iterator[Piece]:
    start, each = 0, f", {cut.by}" if cut.by else ""
    for index, many in enumerate(cut.rows):
        equal = f"part({piece.expression}, {index}, {len(cut.rows)}{each})"
        own = f"rows({piece.expression}, {start}, {start + many}{each})"
        shape = (many * sizes.get(cut.by, 1), *piece.shape[1:])
        yield piece._replace(expression=equal if len(set(cut.rows)) == 1 else own, shape=shape)
        start += many


def _layer(piece: Piece) -> str:
    return layer_name(piece.parameter) or piece.parameter
