"""Repairs that need no value of the reference: the step's own result, changed as bugs change it.

Where the reference computes otherwise, it may have no value that corresponds to a wrong step. Then
each step that it does not have is tried with another sign or scale, turned round, transposed, moved
by one; a change that makes the output right says what is wrong and where.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import torch
from torch import Tensor

from attnlab.diagnosis.families import same_family
from attnlab.diagnosis.pairing import Pairing, Side, equal_results
from attnlab.diagnosis.relations import Relation, constants
from attnlab.diagnosis.repair import MOST_VALUES, Repair, Repaired, Rerun, is_room

MOST_RUNS = 240
TURNED = partial(torch.transpose, dim0=-2, dim1=-1)
Change = tuple[Relation, Callable[[Tensor], Tensor]]


def guess(mine: Rerun, first: Pairing, sizes: Mapping[str, int]) -> Repaired | None:
    """The most upstream line whose results, all changed alike, make the output right."""
    side, runs = first.mine, 0
    most = min(MOST_RUNS, MOST_VALUES // max(1, len(side.values)))
    for group in _lines(side, first):
        for relation, change in _changes(side, group[0], sizes):
            if runs >= most:
                return None
            runs += 1
            values = {i: change(side.values[i].numbers) for i in group}
            after = mine({(side.values[i].call, side.values[i].slot): v for i, v in values.items()})
            if equal_results(after, first.theirs):
                repair = Repair(group[0], -1, side, first, values[group[0]], told=relation)
                return Repaired((repair,), (repair,), first, whole=True, runs=runs)
    return None


def _lines(side: Side, pairing: Pairing) -> Iterator[list[int]]:
    """The steps that the reference does not have, tables last; what a line does each time
    together."""
    found: dict[tuple[str, int, str, int], list[int]] = {}
    for index in pairing.wrong:
        made = side.values[index]
        if not is_room(made) and made.numbers.numel() > 1:
            key = (made.file, made.line, made.op, made.slot)
            found.setdefault(key, []).append(index)
    yield from sorted(found.values(), key=lambda group: _is_table(side, group[0]))


def _is_table(side: Side, index: int) -> bool:
    """Whether a step depends on no input and no weight: what turns a table round may as well be
    wrong where it is used."""
    return not any(side.values[i].name for i in side.ancestors(index))


def _changes(side: Side, index: int, sizes: Mapping[str, int]) -> Iterator[Change]:
    made = side.values[index]
    numbers = made.numbers
    if numbers.dtype is torch.bool:
        yield from _of_mask(numbers)
        return
    says = "the negative of the right one"
    yield Relation("sign", f"what this line computes is {says}"), torch.neg
    if bool((numbers == numbers.round()).all()):
        for step in (1, -1):
            says = f"what this line computes is off by {step} everywhere"
            yield Relation("offset", says), partial(torch.sub, other=step)
    yield from _moved(numbers)
    if same_family(made.op, "mul") or same_family(made.op, "matmul"):
        for name, factor in dict(constants(sizes)).items():
            if factor > 0 and factor != 1:
                way = "large" if factor > 1 else "small"
                told = name if factor > 1 else name.removeprefix("1/")
                says = f"what this line computes is {told} times too {way}"
                yield Relation("scale", says), partial(torch.div, other=factor)


def _moved(numbers: Tensor) -> Iterator[Change]:
    """The same numbers at other places."""
    head = "what this line computes is "
    if numbers.dim() > 1 and numbers.size(-1) == numbers.size(-2) > 1:
        says = f"{head}transposed: axes -2 and -1 change places"
        yield Relation("transposed", says), TURNED
    for axis in (-1, -2)[: numbers.dim()]:
        if numbers.size(axis) < 3:
            continue
        yield (
            Relation("flipped", f"{head}reversed along axis {axis}"),
            partial(torch.flip, dims=(axis,)),
        )
        for step in (1, -1):
            says = f"{head}rolled by {step} along axis {axis}"
            yield Relation("rolled", says), partial(torch.roll, shifts=-step, dims=axis)


def _of_mask(numbers: Tensor) -> Iterator[Change]:
    head = "what this line computes is "
    yield Relation("mask-inverted", f"{head}the mask turned round"), torch.logical_not
    if numbers.dim() > 1 and numbers.size(-1) == numbers.size(-2) > 1:
        eye = torch.eye(numbers.size(-1), dtype=torch.bool)
        yield Relation("mask-transposed", f"{head}the mask's transpose"), TURNED
        says = f"{head}masked otherwise on one diagonal alone"
        yield Relation("mask-diagonal", says), partial(torch.logical_xor, other=eye)
