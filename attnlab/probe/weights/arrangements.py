"""Expressions of a parameter's shape, that hold what some parameters of the reference hold."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import permutations
from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attnlab.probe.weights.roles import Piece, Slot

MOST_AXES = 5
LAYERS = 4  # pieces that may be several of each of several layers
HALVES = re.compile(r"cat\(part\(([\w.]+), 0, 2\), part\(\1, 1, 2\)\)")  # the whole again
LENGTHS, WIDTH = {"B", "S", "T", "L"}, "D"  # sizes that are no numbers of parts
CONSTANT = 32  # a number of parts that may be none of the sizes: two halves, cells of a window


def expressions(
    slot: Slot, group: tuple[Piece, ...], sizes: Mapping[str, int]
) -> Iterator[tuple[float, str]]:
    """Expressions of the slot's shape that hold the group's elements."""
    for start, terms in _terms(slot, group, sizes):
        shapes = [shape for _, shape in terms]
        for cost, expression, shape, cut in _fusions([t for t, _ in terms], shapes, sizes, slot):
            heads = () if slot.per else tuple(s for s in ("H", "Hkv") if s in sizes)
            for more, way in _arrangements((expression, shape), cut, slot, heads, sizes):
                yield start + cost + more, way


Typed = tuple[str, tuple[int, ...]]  # an expression and the shape it has at the search's sizes


def _terms(
    slot: Slot, group: tuple[Piece, ...], sizes: Mapping[str, int]
) -> Iterator[tuple[float, list[Typed]]]:
    """The pieces, or what one head has of each: some of the rows, or some of the columns."""
    if not slot.per:
        yield 0.0, [(p.expression, p.shape) for p in group]
        kernel = len(group) == 1 and len(group[0].shape) > 2 and group[0].shape[-1] > 1
        if kernel and len(slot.shape) <= 2:  # the taps of a filter, the latest first
            yield 0.3, [(f"flip({group[0].expression}, {len(group[0].shape) - 1})", group[0].shape)]
        return
    n = sizes[slot.per]
    if all(p.shape and p.shape[0] % n == 0 for p in group):
        rows = [(f"part({p.expression}, #, {slot.per})", p.shape) for p in group]
        yield 0.0, [(e, (s[0] // n, *s[1:])) for e, s in rows]
    if all(len(p.shape) == 2 and p.shape[1] % n == 0 for p in group):
        columns = [(f"t(part(t({p.expression}), #, {slot.per}))", p.shape) for p in group]
        yield 0.1, [(e, (s[0], s[1] // n)) for e, s in columns]


def _fusions(
    terms: list[str], shapes: list[tuple[int, ...]], sizes: Mapping[str, int], slot: Slot
) -> Iterator[tuple[float, str, tuple[int, ...], int | None]]:
    """Fused pieces side by side, stacked or head by head; which axis heads can be cut out of."""
    if len(terms) == 1:
        yield 0.0, terms[0], shapes[0], -1
        return
    inside = ", ".join(terms)
    if not all(shapes):  # single numbers
        if not any(shapes):
            yield 0.0, f"stack({inside})", (len(terms),), None
        return
    rows = sum(s[0] for s in shapes)
    several = len(terms) >= LAYERS and len(set(shapes)) == 1
    layers = several and len(slot.shape) == len(shapes[0]) + 1
    whole = HALVES.sub(r"\1", f"cat({inside})")
    yield 0.0, whole, (rows, *shapes[0][1:]), 0 if layers else None
    if len(set(shapes)) > 1:
        return
    yield 0.0, f"stack({inside})", (len(terms), *shapes[0]), -1
    for cost, symbol in ((0.2, "H"), (0.3, "D")):  # by head, or feature by feature
        if symbol in sizes and shapes[0][0] % sizes[symbol] == 0:
            yield cost, f"interleave({symbol}, {inside})", (rows, *shapes[0][1:]), 0


def _arrangements(
    typed: Typed, cut: int | None, slot: Slot, heads: tuple[str, ...], sizes: Mapping[str, int]
) -> Iterator[tuple[float, str]]:
    """The expression with its axes in another order, some cut into several, ones added."""
    if typed[1] == slot.shape and 1 in slot.shape:
        yield 0.0, typed[0]
        return
    core = tuple(n for n in slot.shape if n != 1)
    for expression, shape in (typed, *_flat(typed, len(core))):
        if prod(shape) != prod(core) or not len(shape) <= len(core) <= MOST_AXES:
            continue
        cuttable = () if cut is None or slot.per else range(len(shape)) if cut < 0 else (cut,)
        ways = list(_foldings(shape, core, frozenset(cuttable)))
        if slot.parsed.role == "out":  # it takes what heads give: they lie along its last axis
            ways.sort(key=lambda groups: [len(group) for group in groups])
        else:
            ways.sort(key=lambda groups: [-len(group) for group in groups])
        for rank, groups in enumerate(ways):
            way = _folded(expression, groups, core, heads, sizes)
            if way is None:
                continue
            order = [axis for group in groups for axis in group]
            turned = len(core) == len(shape) == 2 and order == [1, 0]
            plain = len(core) == len(shape) == 2
            likely = slot.parsed.raw == turned if plain else True
            cost = 0.03 * min(rank, 3) + (0.0 if likely else 0.1 if slot.parsed.raw else 0.3)
            yield (0.03 + cost if len(core) > len(shape) else cost), _with_ones(way, slot.shape)


def _foldings(
    shape: tuple[int, ...], core: tuple[int, ...], cuttable: frozenset[int]
) -> Iterator[tuple[tuple[int, ...], ...]]:
    """For each axis the axes of a parameter that it is cut into, in their order: (H * hd, D) to
    (H, D, hd) is ((0, 2), (1,))."""

    def assign(axis: int, left: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], ...]]:
        if axis == len(shape):
            yield from [()] * (not left)
            return
        for many in range(1, len(left) + 1 if axis in cuttable else 2):
            for group in permutations(left, many):
                if prod(core[i] for i in group) == shape[axis]:
                    rest = tuple(i for i in left if i not in group)
                    yield from ((group, *others) for others in assign(axis + 1, rest))

    return assign(0, tuple(range(len(core))))


def _folded(
    expression: str,
    groups: tuple[tuple[int, ...], ...],
    core: tuple[int, ...],
    heads: tuple[str, ...],
    sizes: Mapping[str, int],
) -> str | None:
    """The expression with its axes cut and in order; None where nothing says how many parts there
    are at other sizes."""
    for axis in reversed(range(len(groups))):
        for place, index in enumerate(groups[axis][:-1]):
            count = _count_of(core[index], heads, sizes)
            if not count:
                return None
            expression = f"split({expression}, {axis + place}, {count})"
    now = [index for group in groups for index in group]
    return _permuted(expression, tuple(now.index(i) for i in range(len(core))))


def _count_of(size: int, heads: tuple[str, ...], sizes: Mapping[str, int]) -> str:
    """How an expression says a number of parts: by a symbol, or as a small number that is none."""
    known = next((symbol for symbol in heads if sizes[symbol] == size), "")
    said = next((s for s, n in sizes.items() if n == size and s not in LENGTHS), str(size))
    return known or (said if size <= CONSTANT and said != WIDTH else "")


def _flat(typed: Typed, many: int) -> Iterator[Typed]:
    """Without axes of size one, and with the axes of a patch as one; for a vector, with heads and
    features as one."""
    expression, shape = typed
    if 1 in shape:
        yield f"squeeze({expression})", tuple(n for n in shape if n != 1)
    elif len(shape) > 2:  # a convolution over patches, as a linear layer
        yield f"flatten({expression}, 1)", (shape[0], prod(shape[1:]))
        if len(shape) == 4:  # whose patches may have their channels last
            yield f"flatten(permute({expression}, 0, 2, 3, 1), 1)", (shape[0], prod(shape[1:]))
    elif len(shape) == 2 and many == 1:
        yield f"flatten({expression}, 0)", (prod(shape),)


def _permuted(expression: str, order: tuple[int, ...]) -> str:
    if order == tuple(range(len(order))):
        return expression
    if order == (1, 0):
        return f"t({expression})"
    return f"permute({expression}, {', '.join(map(str, order))})"


def _with_ones(expression: str, shape: tuple[int, ...]) -> str:
    for axis, n in enumerate(shape):
        expression = f"unsqueeze({expression}, {axis})" if n == 1 else expression
    return expression
