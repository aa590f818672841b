"""Repairs that need no value of the reference: the step's own result, changed as bugs change it.

Where the reference computes otherwise, it may have no value that corresponds to a wrong step. Then
each step that it does not have is tried with another sign or scale, turned round, transposed, moved
by one, regrouped, or computed otherwise from what it takes; a change that makes the output right
says what is wrong and where.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import product

import torch
from torch import Tensor

from attnlab.candidate.value_recorder import Value
from attnlab.diagnosis.borrowed import lent
from attnlab.diagnosis.families import called, same_family
from attnlab.diagnosis.pairing import Pairing, Side, equal, equal_results
from attnlab.diagnosis.relations import Relation, constants, relate
from attnlab.diagnosis.repair import MOST_VALUES, Repair, Repaired, Rerun, is_room

SECONDS = 10.0  # of CPU for all of them
MOST_RUNS = 240
MOST_PARTS = 256  # of axes that may be grouped otherwise
ORDINALS = ("first", "second")
HEAD = "what this line computes is "
MIXED = Relation("axes-mixed", f"{HEAD}the right numbers at wrong places: axes are mixed")
TURNED = partial(torch.transpose, dim0=-2, dim1=-1)
Change = tuple[Relation, Callable[[], Tensor]]
Trial = tuple[Relation, dict[int, Tensor]]  # the values to be put there by their indices


def guess(
    mine: Rerun, first: Pairing, sizes: Mapping[str, int], again: tuple[Rerun, Pairing]
) -> Repaired | None:
    """The most upstream line whose results, all changed alike, make the output right, and that of
    other inputs, `again`."""
    side = first.mine
    most = min(MOST_RUNS, MOST_VALUES // max(1, len(side.values)))
    ends = time.process_time() + SECONDS
    for runs, (relation, values) in enumerate(_trials(first, sizes), 1):
        if runs > most or time.process_time() > ends:
            return None
        after = mine({(side.values[i].call, side.values[i].slot): v for i, v in values.items()})
        if equal_results(after, first.theirs) and _holds(relation, side, values, sizes, *again):
            at = next(iter(values))
            repair = Repair(at, -1, side, first, values[at], told=relation)
            return Repaired((repair,), (repair,), first, whole=True, runs=runs)
    return None


def _holds(
    relation: Relation,
    side: Side,
    values: Mapping[int, Tensor],
    sizes: Mapping[str, int],
    mine: Rerun,
    first: Pairing,
) -> bool:
    """Whether the same change of the same steps makes another output right, or that is right."""
    if first.is_right:
        return True
    keys = {(side.values[i].call, side.values[i].slot) for i in values}
    for other, found in _trials(first, sizes):
        steps = {(v.call, v.slot): n for i, n in found.items() for v in [first.mine.values[i]]}
        alike = other.kind == relation.kind and steps.keys() == keys
        if alike and equal_results(mine(steps), first.theirs):
            return True
    return False


def _trials(first: Pairing, sizes: Mapping[str, int]) -> Iterator[Trial]:
    side = first.mine
    yield from _operands(first, sizes)
    groups = list(_lines(first))
    for changes_of, group in product((_changes, _places, _scales), groups):
        changes = [dict(changes_of(side, index, sizes)) for index in group]
        for relation in changes[0]:
            if all(relation in each for each in changes):
                pairs = zip(group, changes, strict=True)
                yield relation, {i: each[relation]() for i, each in pairs}


def _operands(first: Pairing, sizes: Mapping[str, int]) -> Iterator[Trial]:
    """What a wrong step takes that has the right numbers at other places, or lacks a step that the
    reference applies to them."""
    mine, theirs = first.mine, first.theirs
    groups: dict[tuple[object, ...], list[int]] = {}
    for step in first.sources:
        for place, taken in enumerate(mine.values[step].inputs):
            for at in _copied(mine, taken):
                made, taker = mine.values[at], mine.values[step]
                groups.setdefault((taker.line, taker.op, place, made.line, made.op), []).append(at)
    for group in groups.values():
        for other in sorted(first.needed):
            told = _other_operand(first, group[0], other, sizes)
            values = {at: lent(theirs, other, mine, at) for at in group} if told else {}
            if told and all(value is not None for value in values.values()):
                yield told, {at: value for at, value in values.items() if value is not None}


def _copied(side: Side, taken: int) -> Iterator[int]:
    """A value, and those that it is cut out of or laid out from, as `k` of `k[:, t]`."""
    at = taken
    while side.values[at].call < 0 and side.values[at].inputs:
        at = side.values[at].inputs[0]  # a weight, of which it is a copy
    while side.values[at].call >= 0:
        yield at
        made = side.values[at]
        if not (same_family(made.op, "view") or same_family(made.op, "repeat")):
            return
        at = made.inputs[0]


def _other_operand(
    first: Pairing, at: int, other: int, sizes: Mapping[str, int]
) -> Relation | None:
    """How a value of theirs differs from what steps take in its place; None where no reason is seen
    to put it there."""
    mine, theirs = first.mine, first.theirs
    numbers, right = mine.values[at].numbers, theirs.values[other].numbers
    if right.shape == numbers.shape and theirs.classes[other] == first.class_of(at):
        if equal(right.double(), numbers.double()):
            return None
        told = relate(numbers, right, sizes)
        return Relation(told.kind, HEAD + told.says) if told else MIXED
    made = theirs.values[other]
    if right.numel() < numbers.numel() or made.call < 0 or not first.matches[at]:
        return None
    if other in first.unclaimed and first.class_of(at) in first.their_input_classes(other):
        says = f"the reference applies {called(made.op)} to {HEAD.removesuffix(' is ')}"
        return Relation("missing-step", f"{says}, and this file does not")
    return None


def _lines(pairing: Pairing) -> Iterator[list[int]]:
    """The steps that the reference does not have, tables last, then what these take; what a line
    does each time together. What turns a table round may as well be wrong where it is used."""
    side, found = pairing.mine, dict[tuple[object, ...], list[int]]()
    taken = {i for step in pairing.wrong for i in side.values[step].inputs}
    right = taken.difference(pairing.wrong)
    for index in (*pairing.wrong, *sorted(right)):
        made = side.values[index]
        if not is_room(made) and made.numbers.numel() > 1:
            key = (made.file, made.line, made.op, made.slot, index in right)
            found.setdefault(key, []).append(index)
    yield from sorted(found.values(), key=lambda g: (g[0] in right, not side.fed[g[0]]))


def _changes(side: Side, index: int, sizes: Mapping[str, int]) -> Iterator[Change]:
    made = side.values[index]
    numbers = made.numbers
    if numbers.dtype is torch.bool:
        yield from _of_mask(numbers)
        return
    yield Relation("sign", f"{HEAD}the negative of the right one"), partial(torch.neg, numbers)
    yield from _from_operands(side, index, sizes)
    yield from _halves(numbers)
    if bool((numbers == numbers.round()).all()):
        for step in (1, -1):
            says = f"{HEAD}off by {step} everywhere"
            yield Relation("offset", says), partial(torch.sub, numbers, step)


def _places(side: Side, index: int, sizes: Mapping[str, int]) -> Iterator[Change]:
    numbers = side.values[index].numbers
    if numbers.dtype is not torch.bool:
        yield from _moved(numbers)
        yield from _regrouped(numbers, {*sizes.values(), 2})


def _scales(side: Side, index: int, sizes: Mapping[str, int]) -> Iterator[Change]:
    made = side.values[index]
    if same_family(made.op, "mul") or same_family(made.op, "matmul"):
        for name, factor in dict(constants(sizes)).items():
            if factor > 0 and factor != 1:
                way = "large" if factor > 1 else "small"
                told = name if factor > 1 else name.removeprefix("1/")
                says = f"{HEAD}{told} times too {way}"
                yield Relation("scale", says), partial(torch.div, made.numbers, factor)


def _from_operands(side: Side, index: int, sizes: Mapping[str, int]) -> Iterator[Change]:
    """The step computed otherwise from what it takes."""
    made = side.values[index]
    taken = [side.values[i].numbers.double() for i in made.inputs]
    if len(taken) == 2:
        yield from _of_two(made, taken)
    if len(taken) == 1 and same_family(made.op, "view"):
        yield from _reshaped(taken[0], made.numbers.shape, sizes)
    if len(taken) == 1 and same_family(made.op, "softmax") and taken[0].dim() > 1:
        function = torch.softmax if made.op == "softmax" else torch.log_softmax
        for axis in range(-taken[0].dim(), 0):
            says = f"the reference normalises along axis {axis}"
            yield Relation("softmax-axis", says), partial(function, taken[0], axis)
    if bool((made.numbers < 0).any()) and made.numbers.is_floating_point():
        says = "the reference takes its absolute value"
        yield Relation("sign", says), partial(torch.abs, made.numbers)


def _of_two(made: Value, taken: Sequence[Tensor]) -> Iterator[Change]:
    """A sum or product with another sign, turned round, or without one of its operands."""
    adds, multiplies = (same_family(made.op, kind) for kind in ("sub", "mul"))
    if not all(_fits(each, made.numbers) for each in taken):
        return  # as where a part of a tensor is written
    if adds and made.numbers.is_floating_point():
        for one in (1, 0):
            less = one and equal(made.numbers, taken[0] - taken[1])
            says = f"the {ORDINALS[one]} operand has the wrong sign here"
            turned = torch.add if less else torch.sub
            yield Relation("sign", says), partial(turned, made.numbers, taken[one], alpha=2)
    if multiplies:
        product = equal(made.numbers, taken[0] * taken[1])
        ways = ("multiplies", "divide") if product else ("divides", "multiply")
        says = f"it {ways[0]} where it has to {ways[1]}"
        right = taken[0] / taken[1] if product else taken[0] * taken[1]
        yield Relation("exponent", says), partial(torch.clone, right)
    for one, other in ((0, 1), (1, 0)) if adds or multiplies else ():
        if taken[one].shape == made.numbers.shape and taken[one].isfinite().any():
            says = f"the reference does not have the {ORDINALS[other]} operand here"
            yield Relation("extra-term", says), partial(torch.clone, taken[one])


def _fits(small: Tensor, like: Tensor) -> bool:
    """Whether one broadcasts to the shape of the other."""
    sizes = zip(small.shape[::-1], like.shape[::-1], strict=False)
    return small.dim() <= like.dim() and all(one in {1, other} for one, other in sizes)


def _reshaped(source: Tensor, shape: torch.Size, sizes: Mapping[str, int]) -> Iterator[Change]:
    """Axes that were to change places before; heads may be folded into the batch."""
    if source.numel() != shape.numel():
        return
    for axis in range(source.dim() - 1):
        says = f"axes {axis} and {axis + 1} have to change places before this line"
        changed = source.transpose(axis, axis + 1).reshape(shape)
        yield Relation("axes-mixed", says), partial(torch.clone, changed)
    for axis in range(source.dim()):
        for name, part in sizes.items():
            if 1 < part < source.size(axis) and not source.size(axis) % part:
                split = _split(source, axis, (source.size(axis) // part, part))
                for one in range(max(axis - 1, 0), min(axis + 2, source.dim())):
                    told = f"split axis {axis} into {source.size(axis) // part} x {part} ({name})"
                    says = f"before this line {told}, and exchange axes {one} and {one + 1} of that"
                    changed = split.transpose(one, one + 1).reshape(shape)
                    yield Relation("axes-mixed", says), partial(torch.clone, changed)


def _halves(numbers: Tensor) -> Iterator[Change]:
    """Some of the channels with the other sign, as when pairs are turned."""
    many = numbers.size(-1) if numbers.dim() else 0
    if many < 4 or many % 2:
        return
    places = torch.arange(many)
    parts = {
        "first half": places < many // 2,
        "second half": places >= many // 2,
        "even places": places % 2 == 0,
        "odd places": places % 2 == 1,
    }
    for name, chosen in parts.items():
        says = f"the sign of the {name} of axis -1 is wrong"
        yield Relation("sign", says), partial(torch.mul, numbers, 1 - 2 * chosen.double())


def _regrouped(numbers: Tensor, parts: Collection[int]) -> Iterator[Change]:
    """An axis, or two neighbours, split the other way round: heads before groups."""
    for axis in range(-numbers.dim(), 0):
        size = numbers.size(axis)
        for one in sorted({part for p in parts if p and size % p == 0 for part in (p, size // p)}):
            if 1 < one < size <= MOST_PARTS:
                pair = size // one, one
                value = _split(numbers, axis, pair).transpose(axis - 1, axis)
                told = f"grouped as {pair[0]} x {one}, not as {one} x {pair[0]}, along axis {axis}"
                change = partial(torch.flatten, value, axis - 1, axis)
                yield Relation("order", HEAD + told), change
    for axis in range(-numbers.dim(), -1):
        pair = numbers.size(axis + 1), numbers.size(axis)
        if min(pair) > 1:
            joined = _split(numbers.flatten(axis, axis + 1), axis + 1, pair)
            told = f"split as {pair[1]} x {pair[0]}, not as {pair[0]} x {pair[1]}"
            says = f"{HEAD}{told}, in axes {axis} and {axis + 1}"
            yield Relation("order", says), partial(torch.transpose, joined, axis, axis + 1)


def _split(numbers: Tensor, axis: int, pair: tuple[int, int]) -> Tensor:
    """One axis as two."""
    axis %= numbers.dim()
    return numbers.reshape(*numbers.shape[:axis], *pair, *numbers.shape[axis + 1 :])


def _moved(numbers: Tensor) -> Iterator[Change]:
    """The same numbers at other places."""
    if numbers.dim() > 1 and numbers.size(-1) == numbers.size(-2) > 1:
        says = f"{HEAD}transposed: axes -2 and -1 change places"
        yield Relation("transposed", says), partial(TURNED, numbers)
    for axis in (-1, -2)[: numbers.dim()]:
        if numbers.size(axis) < 3:
            continue
        says = f"{HEAD}reversed along axis {axis}"
        yield Relation("flipped", says), partial(torch.flip, numbers, dims=(axis,))
        for step in (1, -1):
            says = f"{HEAD}rolled by {step} along axis {axis}"
            yield Relation("rolled", says), partial(torch.roll, numbers, shifts=-step, dims=axis)


def _of_mask(numbers: Tensor) -> Iterator[Change]:
    says = f"{HEAD}the mask turned round"
    yield Relation("mask-inverted", says), partial(torch.logical_not, numbers)
    if numbers.dim() > 1 and numbers.size(-1) == numbers.size(-2) > 1:
        eye = torch.eye(numbers.size(-1), dtype=torch.bool)
        yield Relation("mask-transposed", f"{HEAD}the mask's transpose"), partial(TURNED, numbers)
        says = f"{HEAD}masked otherwise on one diagonal alone"
        yield Relation("mask-diagonal", says), partial(torch.logical_xor, numbers, eye)
