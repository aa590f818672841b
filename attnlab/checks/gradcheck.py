"""Gradients equal the slopes of the outputs, found by finite differences.

A small step of the inputs or weights in a random direction changes the output by as much as the
gradient says. This needs no reference: the module is compared with its own values.

Wrong: `weights.detach() @ v`, `.data`, `torch.no_grad()` around a part: values depend on what
autograd does not see. A hand-written backward that forgets a factor, or swaps two elements.
Right: every step is an operation that autograd can follow.

Computed in float64 with central differences, in one direction for all inputs and weights together
("fast mode"); where that slope is wrong, for each input and for the weights by themselves. On
demand every element is moved by itself, which takes two calls for each; of an input or weight with
more than 200, as many at random. A module that does not run
in float64 is left out, and so are the weights of one that takes tokens, since the row of a padding
token changes values and is not trained.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from attnlab.checks.base import Failure, Probe, Tier, check
from attnlab.checks.shared.compare import first_failure
from attnlab.checks.shared.inputs import by_hand, sizes_of
from attnlab.probe.answers import Gradients, Inputs, Skip, Tensor

TITLE = "Gradients equal finite differences"
# How far to step, and by how much the two slopes may differ: relative, and per unit of output.
# Where a step goes over the kink of a ReLU, one that is shorter does not.
STEPS, NEAR = (1e-5, 1e-7, 1e-9), (1e-4, 1e-6)
# For parts that compute in float32: from the slopes of a long step and of one twice as long follows
# that of none, but for the fourth power of the step. The worst of right modules with softmax, core
# or norm in float32 is off by 9e-5 per unit, over 60 seeds; at shorter steps rounding is more.
LONG, ROUGH = 2e-3, (1e-3, 1e-4)
MANY = 200  # elements of one tensor that are moved by themselves
Ways = dict[str, Tensor]  # a direction to step in, for each tensor that moves


@dataclass(frozen=True)
class Point:
    """Where slopes are taken, and what autograd says of them."""

    probe: Probe
    inputs: Inputs
    weights: Ways  # as they are
    found: Gradients

    @classmethod
    def of(cls, probe: Probe) -> Point:
        known = probe.given_parameters()
        found = probe.gradient_sample_in_float64()
        if found is None:
            raise Skip("the module does not run in float64")
        wide, inputs, gradients = found
        weights = wide.parameters() if known is None else known
        learns = set(probe.module_facts().trained)  # what is frozen has no gradient by intention
        doubled = {name: w.double() for name, w in weights.items() if name in learns}
        return cls(wide, inputs, doubled, gradients)

    def floats(self) -> list[str]:
        """The inputs that have gradients."""
        return [n for n, t in self.inputs.items() if t is not None and t.is_floating_point()]

    def differs(self, inputs: Ways, weights: Ways, shown: str) -> Failure | None:
        """What is wrong with the slope along these ways; the weights are put back."""
        said = _slope(self.found.inputs, inputs) + _slope(self.found.parameters, weights)
        size = self.found.cotangent.double().norm().item()
        slopes = []
        for step in STEPS:
            slopes.append(self._slope(step, inputs, weights))
            if _is_close(slopes[-1], said, NEAR, size):
                return None
        rough = (
            4 * self._slope(LONG, inputs, weights) - self._slope(2 * LONG, inputs, weights)
        ) / 3
        if _is_close(rough, said, ROUGH, size):
            return None
        return Failure(
            message=f"in float64, a step of {shown} changes the output by "
            f"{slopes[0]:.6g} per unit, and the gradient says {said:.6g}",
            sizes=sizes_of(self.probe, self.inputs),
        )

    def _slope(self, step: float, inputs: Ways, weights: Ways) -> float:
        """By central differences."""
        up, down = (self._loss(way) for way in self._called(step, inputs, weights))
        return (up - down) / (2 * step)

    def _called(self, step: float, inputs: Ways, weights: Ways) -> list[Tensor]:
        """The outputs a step this way and a step back."""
        moved = [
            {**self.inputs, **{n: self.inputs[n] + by * way for n, way in inputs.items()}}
            for by in (step, -step)
        ]
        if not weights:
            return self.probe.calls(moved)
        lent = [
            {n: self.weights[n] + by * way for n, way in weights.items()} for by in (step, -step)
        ]
        back = {n: self.weights[n] for n in weights}
        return self.probe.with_weights(list(zip(lent, moved, strict=True)), back, own=True)

    def _loss(self, out: Tensor) -> float:
        """The scalar whose gradients are looked at."""
        value: float = (out.double() * self.found.cotangent.double()).sum().item()
        return value


@check(
    id="gradcheck",
    title="Gradients are the slopes of the outputs",
    needs=("output", "floats"),
    tier=Tier.SLOPES,
    advice="Look for detach, no_grad, .data, .item or NumPy between this tensor and the output; "
    "compare a backward of your own with the derivative.",
    once=True,
)
def _one_direction(probe: Probe) -> Failure | None:
    at = Point.of(probe)
    # The row of a padding token has no gradient by intention.
    tokens = any(i.dtype == "int" for i in probe.contract.inputs)
    weights = {} if tokens else {n: at.probe.noise(weight) for n, weight in at.weights.items()}
    inputs = {name: at.probe.noise(at.inputs[name]) for name in at.floats()}
    failure = at.differs(inputs, weights, "everything")
    if failure is None:
        return None
    alone = (at.differs({name: way}, {}, name) for name, way in inputs.items())
    failure = first_failure(alone) or at.differs({}, weights, "the weights") or failure
    return by_hand(at.probe, failure)


def _is_close(slope: float, said: float, limits: tuple[float, float], size: float) -> bool:
    relative, absolute = limits
    limit = relative * max(abs(said), abs(slope)) + absolute * max(1.0, size)
    return abs(slope - said) <= limit


def _slope(gradients: Mapping[str, Tensor], ways: Ways) -> float:
    """What autograd says of a step along these ways; what no path leads to has no gradient."""
    found = {n: g for n, g in gradients.items() if n in ways}
    return sum(float((g.double() * ways[n]).sum().item()) for n, g in found.items())


@check(
    id="gradcheck-full",
    title="Every element of the gradients is right",
    needs=("output", "floats"),
    tier=Tier.ELEMENTS,
    advice="Compare your backward with autograd's of a plain forward, element by element.",
    once=True,
    on_demand=True,
)
def _every_element(probe: Probe) -> Failure | None:
    return first_failure(_wrong(Point.of(probe)))


def _wrong(at: Point) -> Iterator[Failure | None]:
    """What is wrong with the slope of each element."""
    for name in at.floats():
        for way in _unit_directions(at, at.inputs[name]):
            yield at.differs({name: way}, {}, _element(name, way))
    for name, weight in at.weights.items():
        for way in _unit_directions(at, weight):
            yield at.differs({}, {name: way}, _element(name, way))


def _unit_directions(at: Point, like: Tensor) -> Iterator[Tensor]:
    """One direction for each element that is looked at."""
    some = {at.probe.random_integer(0, like.numel()) for _ in range(MANY)}
    for i in range(like.numel()) if like.numel() <= MANY else sorted(some):
        way = like.new_zeros(like.numel())
        way[i] = 1.0
        yield way.view(like.shape)


def _element(name: str, way: Tensor) -> str:
    return f"{name}{way.nonzero()[0].tolist()}"
