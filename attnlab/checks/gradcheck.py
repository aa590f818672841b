"""Gradients are the slopes of the outputs.

Moving an input or the weights a little in a random direction changes the output by as much as the
gradient says. This needs no reference, so it holds a module to its own values.

Wrong: `weights.detach() @ v`, `.data`, a `no_grad` around a part: values change with what autograd
does not see. A hand-written backward that forgets a factor.
Right: every step is an operation that autograd can follow.

Computed in float64 with central differences, one direction for each input and one for all weights
together ("fast mode"). A module that does not run in float64 is not looked at, nor are the weights
of one that takes tokens, since the row of a padding token changes values and never learns.
"""

from collections.abc import Callable

from attnlab.checks.base import Failure, Gradients, Inputs, Probe, Skip, Tensor

TITLE = "Gradients are the slopes of the outputs"
NEEDS = ("output", "floats")
AFTER = (
    "output-shape",
    "finite",
    "deterministic-eval",
    "input-unchanged",
    "matches-reference",
    "gradients-finite",
    "gradients-match",
)
ADVICE = "Look for detach, no_grad, .data, .item or NumPy between this tensor and the output."
ONCE = True
# How far to step, and by how much the two slopes may differ: relative, and per unit of output.
STEPS = ((1e-5, 1e-4, 1e-6), (1e-3, 1e-3, 1e-4))  # the second for parts that compute in float32


def run(probe: Probe) -> Failure | None:
    wide = probe.in_float64()
    if wide is None:
        raise Skip("the module does not run in float64")
    inputs = wide.draw("random")
    found = wide.gradients(inputs)
    for name in floats(inputs):
        failure = of_input(wide, inputs, found, name, wide.noise(inputs[name]))
        if failure:
            return failure
    if any(i.dtype == "int" for i in wide.contract.inputs):
        return None  # the row of a padding token has no gradient by intention
    weights = copies(wide)
    ways = {name: wide.noise(weight) for name, weight in weights.items()}
    return of_weights(wide, inputs, found, weights, ways) if weights else None


def floats(inputs: Inputs) -> list[str]:
    """The inputs that have gradients."""
    return [n for n, t in inputs.items() if t is not None and t.is_floating_point()]


def copies(probe: Probe) -> dict[str, Tensor]:
    """The weights as they are now."""
    return {name: weight.clone() for name, weight in probe.parameters().items()}


def of_input(
    probe: Probe, inputs: Inputs, found: Gradients, name: str, way: Tensor, shown: str = ""
) -> Failure | None:
    """The slope along one direction of one input."""

    def loss(step: float) -> float:
        return _value(probe, {**inputs, name: inputs[name] + step * way}, found)

    return _differ(loss, _slope(found.inputs.get(name), way), shown or name, found)


def of_weights(
    probe: Probe,
    inputs: Inputs,
    found: Gradients,
    weights: dict[str, Tensor],
    ways: dict[str, Tensor],
    shown: str = "the weights",
) -> Failure | None:
    """The slope along one direction of some weights, which are put back."""

    def loss(step: float) -> float:
        probe.overwrite({n: weights[n] + step * way for n, way in ways.items()})
        return _value(probe, inputs, found)

    said = sum(_slope(found.parameters.get(n), way) for n, way in ways.items())
    failure = _differ(loss, said, shown, found)
    probe.overwrite({n: weights[n] for n in ways})
    return failure


def _value(probe: Probe, inputs: Inputs, found: Gradients) -> float:
    """The scalar whose gradients are looked at."""
    out: float = (probe.call(inputs).double() * found.cotangent.double()).sum().item()
    return out


def _slope(gradient: Tensor | None, way: Tensor) -> float:
    """What autograd says of a step in this direction."""
    return (gradient.double() * way).sum().item() if gradient is not None else 0.0


def _differ(
    loss: Callable[[float], float], said: float, name: str, found: Gradients
) -> Failure | None:
    """A failure where no step size gives the slope that autograd says."""
    size = found.cotangent.double().norm().item()
    slopes = []
    for step, relative, absolute in STEPS:
        slopes.append((loss(step) - loss(-step)) / (2 * step))
        limit = relative * max(abs(said), abs(slopes[-1])) + absolute * max(1.0, size)
        if abs(slopes[-1] - said) <= limit:
            return None
    return Failure(
        message=f"a step of {name} changes the output by "
        f"{slopes[0]:.6g} per unit, and the gradient says {said:.6g}"
    )
