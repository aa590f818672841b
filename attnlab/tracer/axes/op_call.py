"""One operation as the rules see it: its name, its arguments, the axes of its operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from attnlab.tracer.axes.atoms import Atom, Axes

Shape = tuple[int, ...]
Rule = Callable[..., Any]


@dataclass
class Mark:
    """A softmax on the way to the sum that uses it: the row it was made in, and its axis."""

    row: int
    atoms: tuple[Atom, ...]
    keys: bool = False  # over the axis where keys are expected: the last one, or a primed one


class Tile(NamedTuple):
    """Heads laid down several times: the row, and the atom of the copies."""

    row: int
    copies: Atom


@dataclass
class Added:
    """What was added to scores, or filled in: by the operand `by`."""

    row: int
    by: TracedTensor


@dataclass
class TracedTensor:
    """A tensor: its axes, and what is known of its values."""

    shape: Shape
    axes: Axes
    weight: str = ""  # the name of the parameter or buffer that it is
    soft: Mark | None = None
    pooled: int | None = None  # the row in which the batch was averaged away
    tiled: Tile | None = None  # heads that were laid out by `repeat`
    total: TracedTensor | None = None  # the tensor that this is the sum of
    over: tuple[Atom, ...] = ()  # the axes of that sum
    logs: bool = False  # the sum is one of exponentials, and this its logarithm
    less: tuple[Atom, ...] = ()  # the axes along which exp of this adds up to 1
    weighed: bool = False  # weights of a softmax times what they weigh
    exp: bool = False  # made by exp: divided by its sum it is a softmax
    added: tuple[Added, ...] = ()  # what was added to it as biases and masks


@dataclass
class Call:
    """An operation with every tensor among its arguments as an `Arr`."""

    name: str
    row: int  # of its first output
    args: list[Any]
    kwargs: dict[str, Any]
    arrays: list[TracedTensor]
    outs: list[Shape]
    floats: bool = True  # the result is of floating point
    module: str = ""  # the layer it runs in
    file: str = ""
    line: int = 0

    @property
    def x(self) -> TracedTensor:
        """The first tensor."""
        return self.arrays[0]

    @property
    def shape(self) -> Shape:
        """Of the first output."""
        return self.outs[0]

    def arg(self, place: int, name: str, default: Any = None) -> Any:
        """A positional or keyword argument."""
        if name in self.kwargs:
            return self.kwargs[name]
        return self.args[place] if place < len(self.args) else default

    def view(self, axes: Axes) -> TracedTensor:
        """The values of the first tensor, with other axes: what is known of them stays true."""
        x = self.x
        return TracedTensor(
            self.shape, axes, soft=x.soft, pooled=x.pooled, tiled=x.tiled, weighed=x.weighed
        )

    def dim(self, place: int, default: int = -1, name: str = "dim", rank: int = 0) -> int:
        """An axis argument, counted from the left."""
        value = self.arg(place, name, self.kwargs.get("axis", default))
        if type(value) is not int:
            value = default
        return value % (rank or len(self.x.shape))


def by_name(rules: Mapping[Rule, str]) -> dict[str, Rule]:
    """The rule of each operation, of rules with the operations' names in a text."""
    return {name.strip("_"): rule for rule, names in rules.items() for name in names.split()}
