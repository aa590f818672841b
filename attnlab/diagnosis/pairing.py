"""Which values of two computations are the same numbers, however they are laid out.

Two values are paired where one is the other with whole axes moved, merged or split, in order. That
is what right programs do differently (B S D or B S H hd), while mixing heads with channels, or
swapping queries with keys, gives the same numbers at other places and is no pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import permutations

import torch
from torch import Tensor

from attnlab.candidate.value_recorder import Value, Values
from attnlab.diagnosis.loops import inner_loops, join, loops, with_wholes

CLOSE = 2e-6  # of the largest number; tables may have been made in float32
MOST_AXES = 6
LOW = -1e4  # what is added to close a place
TRIVIAL = 4  # numbers; so few are equal by accident


class Side:
    """The values of one computation, with what it takes to find them in another."""

    def __init__(self, values: Values, wholes: bool = False) -> None:
        """With `wholes`, what loops make piece by piece is joined to values of its own."""
        self.values: Sequence[Value] = values.values
        self.made_of: dict[int, list[int]] = {}  # the pieces of what was joined
        if wholes:
            self.values, self.made_of = with_wholes(values.values)
        self.same: list[bool] = []  # which are as in the run before
        self._run_before: Side | None = None
        self.output, self.result = values.output, values.result
        self.returned, self.alone = values.returned, values.alone

    @staticmethod
    def empty() -> Side:
        """Of a call that raised."""
        return Side(Values())

    @cached_property
    def plain(self) -> list[Tensor]:
        """Each value in float64, without the axes along which it repeats."""
        return [
            self._run_before.plain[i]
            if self._run_before and self.same[i]
            else without_repeats(v.numbers)
            for i, v in enumerate(self.values)
        ]

    @cached_property
    def prints(self) -> Tensor:
        """A row of numbers for each value that no layout changes."""
        rows = [
            self._run_before.prints[i]
            if self._run_before and self.same[i]
            else fingerprint(v.numbers)
            for i, v in enumerate(self.values)
        ]
        return torch.stack(rows) if rows else torch.empty(0, 6)

    def follow(self, before: Side) -> None:
        """Take over what is known of the values that an earlier run has as well."""
        self.same = [
            i < len(before.values) and torch.equal(v.numbers, before.values[i].numbers)
            for i, v in enumerate(self.values)
        ]
        self._run_before = before
        self.plain, self.prints  # noqa: B018  now, so that runs do not hold all before them
        self._run_before = None

    @cached_property
    def classes(self) -> list[int]:
        """For each value the first that is the same up to its layout.

        That is no chain: channels that are split, moved and merged again are in another order."""
        found: list[int] = []
        for index in range(len(self.values)):
            same = (i for i in self.find(self, index, stop=index) if found[i] == i)
            found.append(next(same, index))
        return found

    def find(self, other: Side, index: int, stop: int | None = None) -> list[int]:
        """The values here that are value `index` of the other side, before `stop`; those in its
        shape come first."""
        if not len(self.values):
            return []
        return self.find_numbers(other.prints[index], other.plain[index], stop)

    def find_numbers(self, wanted: Tensor, plain: Tensor, stop: int | None = None) -> list[int]:
        """As `find`, of the print of a value and the value without repeats."""
        gap = (self.prints[:stop] - wanted).abs()
        near = (gap <= CLOSE * wanted.abs().clamp(min=1e-3)).all(dim=1)
        same = (i for i in near.nonzero().flatten().tolist() if same_layout(self.plain[i], plain))
        return sorted(same, key=lambda i: self.plain[i].shape != plain.shape)

    @cached_property
    def loops(self) -> list[list[int]]:
        """The results of each step that runs more than once."""
        return [*loops(self.values), *inner_loops(self.values)]

    @cached_property
    def masks(self) -> dict[int, Tensor]:
        """What is closed, by the value that says so: a mask, or scores that were masked."""
        found = {i: mask_in(numbers) for i, numbers in enumerate(self.plain)}
        return {i: mask for i, mask in found.items() if mask is not None}

    def has_mask(self, mask: Tensor) -> bool:
        """Whether something is closed at the same places here, or just not there."""
        many = int(mask.sum())
        return any(
            same_layout(laid.double(), other.double())
            for other in self.masks.values()
            if other.numel() == mask.numel()
            for laid in (mask, ~mask)
            if int(other.sum()) in {many, mask.numel() - many}
        )

    @cached_property
    def fed(self) -> list[bool]:
        """Which values depend on an input or a weight; tables do not."""
        found: list[bool] = []
        for v in self.values:
            found.append(bool(v.name) or any(found[i] for i in v.inputs))
        return found

    def ancestors(self, index: int) -> set[int]:
        """The value and all that it is made of."""
        found: set[int] = set()
        todo = [index]
        while todo:
            here = todo.pop()
            if here not in found:
                found.add(here)
                todo += self.values[here].inputs
        return found


def equal_results(mine: Side, theirs: Side) -> bool:
    """Whether the outputs are equal."""
    a, b = mine.result, theirs.result
    return a is not None and b is not None and equal(a, b)


def fingerprint(numbers: Tensor) -> Tensor:
    """Means of powers and bounds of the finite numbers, the shares of the finite and of -inf."""
    flat = numbers.double().flatten()
    finite = flat[flat.isfinite()]
    if not len(finite):
        shares = [0.0, (flat == -torch.inf).double().mean().item() if len(flat) else 0.0]
        return torch.tensor([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, *shares], dtype=torch.float64)
    shares = [len(finite) / len(flat), (flat == -torch.inf).double().mean().item()]
    moments = [finite.mean(), (finite**2).mean(), (finite**3).mean(), (finite**4).mean()]
    bounds = [finite.min(), finite.max()]
    return torch.tensor([*(m.item() for m in (*moments, *bounds)), *shares], dtype=torch.float64)


def mask_in(numbers: Tensor) -> Tensor | None:
    """What a value forbids, or allows: a mask of two numbers, or what is masked in scores."""
    if numbers.numel() <= TRIVIAL:
        return None
    low = numbers <= LOW
    if not low.any():
        low = numbers == 1
        if not (low | (numbers == 0)).all():
            return None
    return None if low.all() or not low.any() else without_repeats(low).bool()


def is_mask(numbers: Tensor) -> bool:
    """Whether a value says nothing but what is closed."""
    flat = numbers.double()
    return bool(((flat == 0) | (flat == 1) | (flat <= LOW)).all())


def without_repeats(numbers: Tensor) -> Tensor:
    found = numbers.double()
    for axis in range(found.dim() - 1, -1, -1):
        if _differs_at_once(found, axis):
            continue
        first = found.narrow(axis, 0, min(1, found.size(axis)))
        if found.size(axis) == 1 or (found.size(axis) and equal(first.expand_as(found), found)):
            found = first.squeeze(axis)
    return found


def _differs_at_once(numbers: Tensor, axis: int) -> bool:
    """Whether the first two numbers along an axis already tell that it does not repeat."""
    if numbers.size(axis) < 2 or not numbers.numel():
        return False
    one, other = (numbers.select(axis, at).flatten()[0].item() for at in (0, 1))
    largest = max(abs(one), abs(other))  # what is tiny may be rounding
    return largest > 1e-2 and abs(one - other) > 1e-3 * largest  # never of NaN


def equal(a: Tensor, b: Tensor) -> bool:
    """The same numbers up to rounding; NaN equals NaN."""
    if a.shape != b.shape:
        return False
    if torch.equal(a, b):
        return True
    finite = b[b.isfinite()]
    bound = CLOSE * max(finite.abs().max().item() if finite.numel() else 0.0, 1e-6)
    return torch.allclose(a.double(), b.double(), rtol=0.0, atol=bound, equal_nan=True)


def same_layout(a: Tensor, b: Tensor) -> bool:
    """Whether one is the other with whole axes moved, merged or split, in order."""
    if a.numel() != b.numel():
        return False
    if a.shape == b.shape and equal(a, b):
        return True
    return any(equal(laid, b) for laid in layouts(a, tuple(b.shape)))


def layouts(value: Tensor, shape: tuple[int, ...]) -> Iterator[Tensor]:
    """The ways to lay out `value` in `shape` by moving, merging or splitting whole axes.

    Axes of equal size keep their order: scores and their transpose are not the same. Axes that are
    merged keep theirs: heads stand before their channels."""
    many = max(value.dim(), len(shape))
    if many > MOST_AXES or value.numel() != _product(shape):
        return
    if value.dim() >= len(shape):
        for order, _ in _mergers(tuple(value.shape), shape):
            yield value.permute(order).reshape(shape)
        return
    for order, _ in _mergers(shape, tuple(value.shape)):
        back = sorted(range(len(order)), key=order.__getitem__)
        yield value.reshape([shape[axis] for axis in order]).permute(back)


def _mergers(
    many: tuple[int, ...], few: tuple[int, ...]
) -> Iterator[tuple[tuple[int, ...], list[list[int]]]]:
    """Orders of the axes of `many` whose neighbours multiply to those of `few`."""
    for order in permutations(range(len(many))):
        if any(many[a] == many[b] and a > b for i, a in enumerate(order) for b in order[i + 1 :]):
            continue
        groups = _groups([many[axis] for axis in order], few)
        if groups is None:
            continue
        merged = [[order[i] for i in group] for group in groups]
        if all(group == sorted(group) for group in merged):
            yield order, merged


def _groups(sizes: list[int], few: tuple[int, ...]) -> list[list[int]] | None:
    """The neighbours of `sizes` that multiply to each of `few`; None where they do not."""
    found: list[list[int]] = []
    at = 0
    for wanted in few:
        group, size = [], 1
        while at < len(sizes) and size < wanted:
            size *= sizes[at]
            group.append(at)
            at += 1
        if size != wanted:
            return None
        found.append(group)
    if at < len(sizes):
        if any(size != 1 for size in sizes[at:]) or not found:
            return None
        found[-1] += range(at, len(sizes))
    return found


def _product(shape: Sequence[int]) -> int:
    found = 1
    for size in shape:
        found *= size
    return found


class Pairing:
    """The values of mine that are also values of theirs, and those that are not."""

    def __init__(self, mine: Side, theirs: Side, before: Pairing | None = None) -> None:
        """`before` is a pairing of an earlier run of mine: what is the same is not sought again."""
        self.mine, self.theirs = mine, theirs
        if before:
            mine.follow(before.mine)
        self.found: list[list[int]] = [
            before.found[index] if before and mine.same[index] else theirs.find(mine, index)
            for index in range(len(mine.values))
        ]
        self.matches = list(self.found)
        self._match_pieces()
        self.masks = self._masks_elsewhere()
        last = mine.output
        if last >= 0 and not self.is_right:
            self.matches[last] = []  # the right numbers of another step are a wrong output
        self.wrong = self._unmatched_ancestors()
        claimed = {i for found in self.matches for i in found}
        claimed |= {piece for i in claimed for piece in theirs.made_of.get(i, ())}
        taken = {theirs.classes[i] for i in claimed}
        self.needed = theirs.ancestors(theirs.output) if theirs.output >= 0 else set()
        self.needed |= {i for i, parts in theirs.made_of.items() if self.needed.issuperset(parts)}
        self.unclaimed = [
            i
            for i in sorted(self.needed)
            if theirs.classes[i] not in taken and theirs.values[i].call >= 0
        ]

    def _match_pieces(self) -> None:
        """Where a loop of mine makes a value of theirs, its pieces are that value."""
        for pieces in self.mine.loops:
            if all(self.matches[i] for i in pieces):
                continue
            for whole in join([self.mine.values[i].numbers for i in pieces]):
                found = self.theirs.find_numbers(fingerprint(whole), without_repeats(whole))
                for i in pieces if found else ():
                    self.matches[i] = self.matches[i] or found

    @cached_property
    def is_right(self) -> bool:
        """Whether the outputs are equal."""
        return equal_results(self.mine, self.theirs)

    def _masks_elsewhere(self) -> set[int]:
        """The masks that the reference has as well, but turned round, or only in its scores."""
        return {
            i
            for i, mask in self.mine.masks.items()
            if not self.matches[i] and is_mask(self.mine.values[i].numbers)
            if self.theirs.has_mask(mask)
        }

    def _unmatched_ancestors(self) -> list[int]:
        """The values that the output is made of and that theirs does not have, in order."""
        found: set[int] = set()
        todo = [self.mine.output] if self.mine.output >= 0 else []
        while todo:
            here = todo.pop()
            if here in found or self.known(here):
                continue
            found.add(here)
            todo += self.mine.values[here].inputs
        return sorted(found)

    @property
    def sources(self) -> Iterator[int]:
        """The wrong steps that take nothing wrong, in order; constants are none."""
        for index in self.wrong:
            made = self.mine.values[index]
            is_new = made.inputs and not self.found[index] and made.call >= 0
            if is_new and not set(made.inputs) & set(self.wrong):
                yield index

    def known(self, index: int) -> bool:
        """Whether theirs has the value; what comes from outside and is no number of it counts."""
        made = self.mine.values[index]
        if self.matches[index] or index in self.masks:
            return True
        return made.call < 0 and not made.inputs

    def is_new(self, index: int, before: Pairing) -> bool:
        """Whether a value is one of theirs that no value of mine was before."""
        found = self.matches[index]
        return not found or any(i in before.unclaimed for i in found)

    def class_of(self, index: int) -> int:
        """The class of theirs that a value belongs to; a negative number for its own."""
        found = self.matches[index]
        return self.theirs.classes[found[0]] if found else -1 - index

    def input_classes(self, index: int) -> set[int]:
        return {self.class_of(i) for i in self.mine.values[index].inputs}

    def their_input_classes(self, index: int) -> set[int]:
        return {self.theirs.classes[i] for i in self.theirs.values[index].inputs}
