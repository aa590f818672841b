"""Every single element of the gradient is the slope of the output.

`gradcheck` looks in one random direction, in which two mistakes could cancel; this one moves every
element of every input and weight by itself. Made on demand only, for it calls the module twice for
each element.

Wrong: a hand-written backward that swaps two elements or forgets the last one.
Right: each element by itself changes the output by what its gradient says.
"""

from collections.abc import Iterator

from attnlab.checks.base import Failure, Probe, Tensor, Tier
from attnlab.checks.gradcheck import Point

TITLE = "Every element of the gradients is right"
NEEDS = ("output", "floats")
TIER = Tier.ELEMENTS
ADVICE = "Compare your backward with autograd's of a plain forward, element by element."
ONCE = True
ON_DEMAND = True


def run(probe: Probe) -> Failure | None:
    return next(_wrong(Point.of(probe)), None)


def _wrong(at: Point) -> Iterator[Failure]:
    """Elements whose gradient is not the slope."""
    for name in at.floats():
        for way in _ways(at.inputs[name]):
            failure = at.differs({name: way}, {}, _element(name, way))
            if failure:
                yield failure
    for name, weight in at.weights.items():
        for way in _ways(weight):
            failure = at.differs({}, {name: way}, _element(name, way))
            if failure:
                yield failure


def _ways(like: Tensor) -> Iterator[Tensor]:
    """One direction for each element."""
    for i in range(like.numel()):
        way = like.new_zeros(like.numel())
        way[i] = 1.0
        yield way.view(like.shape)


def _element(name: str, way: Tensor) -> str:
    return f"{name}{way.nonzero()[0].tolist()}"
