"""What the properties share: the copy, the axes of its batch, its promises, and comparisons."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from attnlab.candidate.live.batch import CannotTry, Changes, LiveModel, Output
from attnlab.candidate.live.layout import Layout
from attnlab.candidate.live.watching import Pair, Place, Values, first_apart, pairs

SOME = 3  # positions, of which one may be changed


class NotApplicable(Exception):
    """The property is not promised, or the model has nothing that it speaks of."""


class Broken(Exception):
    """The property does not hold; the message says by how much, `place` where."""

    def __init__(self, message: str, place: Place | None = None) -> None:
        super().__init__(message)
        self.place = place


@dataclass
class Bench:
    """What the properties share: the model, the axes of its batch, and what it promises."""

    live: LiveModel
    layout: Layout
    promises: dict[str, str] = field(default_factory=dict)  # with the reason of each
    before: Output = field(default_factory=lambda: Output({}))
    masks: list[Any] | None = None  # what is known of the masks, once they were tried
    keys: set[int] = field(default_factory=set)  # how many keys attention runs over
    random: bool = False  # whether equal calls differ
    broken: set[str] = field(default_factory=set)  # ids of properties that do not hold
    doubt: str = ""  # why nothing is said of samples: their axis is not known

    def moved(self, a: Tensor, b: Tensor) -> Tensor:
        """Where two outputs differ by more than rounding; infinity and NaN at the same place of
        both are equal."""
        return ~((a - b).abs() <= self.live.tolerance(a)) & ~alike(a, b)

    def promised(self, name: str, missing: str) -> str:
        if name not in self.promises:
            raise NotApplicable(missing)
        return self.promises[name]

    def main(self) -> Tensor:
        if not self.before.main.numel():
            raise NotApplicable("it returns no tensor of floating-point numbers with axes")
        return self.before.main

    def compare(self, changes: Changes, seed: int | None = 0) -> Iterator[Pair]:
        """The operations of a call as it is and of one with these changes, with both values."""
        one, other = Values(), Values()
        self.live.call({}, seed=seed, watch=one)
        self.live.call(changes, seed=seed, watch=other)
        yield from pairs(one, other)

    def blame(
        self,
        changes: Changes,
        moved: Callable[[Tensor, Tensor], bool],
        through: Collection[str] = (),
        instead: Place | None = None,
    ) -> Place | None:
        """The line of the first operation at which something moved that should not have; `instead`
        of that, where it is one of those `through` which the other's fault shows."""
        found = (p for p in self.compare(changes) if p.place.line and moved(p.before, p.after))
        first = next(found, None)
        return instead if first and instead and first.op in through else first and first.place

    def first_apart(self, whole: Values, part: Values, start: int) -> Place | None:
        """The line at which a call with some of the rows, from `start` on, leaves one with all."""
        return first_apart(whole, part, start, lambda a, b: bool(self.moved(a, b).any()))


# ---------------------------------------------------------------- comparing


def largest_gap(out: Tensor, other: Tensor | None) -> float:
    """How far two outputs are apart; NaN and infinity are no gap where both hold the same."""
    other = like(out, other)
    return (out - other).masked_fill(alike(out, other), 0).abs().max().item()


def alike(out: Tensor, other: Tensor) -> Tensor:
    """Where both hold the same, be it NaN."""
    return (out == other) | (out.isnan() & other.isnan())


def like(out: Tensor, other: Tensor | None) -> Tensor:
    """The other output, where it has the same shape; raises `CannotTry` where it has not."""
    if other is None or other.shape != out.shape:
        raise CannotTry("another call returned an output of another shape")
    return other


def differs(before: Tensor | None, now: Tensor) -> bool:
    return before is None or before.shape != now.shape or not torch.equal(before, now)


def numbered(noun: str, numbers: Sequence[int]) -> str:
    """`samples 1 to 3`, `position 4`."""
    first, last = numbers[0], numbers[-1]
    if len(numbers) == 1:
        return f"{noun} {first}"
    if list(numbers) == list(range(first, last + 1)):
        return f"{noun}s {first} to {last}"
    return f"{noun}s {', '.join(map(str, numbers[:5]))}"
