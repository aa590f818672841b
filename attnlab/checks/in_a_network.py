"""Amid other layers it learns what it learns by itself.

In a network inputs come from another layer: they are no leaves of the graph, nor contiguous, and
the gradient that comes back is a view at odd strides, and large where a loss is scaled. A layer is
called again before the first call has sent its gradient back, gradients add up, and some train a
layer whose parameters are frozen for what stands before it. None of it changes a gradient.

Wrong: a custom `backward` that calls `view` on its gradient; weights kept on `self` for backward,
where the next call replaces them; `if not x.is_leaf: x = x.detach()`; `zero_grad()` in forward; a
hook that clamps gradients; `torch.no_grad()` where no parameter requires a gradient; another value
where gradients are on; a running mean that is updated while it learns.
Right: what backward needs is saved by `ctx.save_for_backward`, and forward knows nothing of the
graph that it is in.

Compared with the reference are an output with gradients on, the gradients of four calls (with
a mask, causal, of a single position, of a long sequence), their sum in the parameters with that of
the causal one again, whose inputs require none as in a first layer, and those of inputs beside
frozen parameters; in train mode, where no dropout is promised. The output in eval mode has to be
the same afterwards.
"""

from dataclasses import replace

from attnlab.checks.base import (
    Failure,
    Inputs,
    InterleavedGradients,
    Probe,
    Skip,
    Tensor,
    Tier,
    far,
    first_index,
)
from attnlab.checks.shared.inputs import beside, rather, sizes_of, slopes_differ

TITLE = "Amid other layers it learns the same"
NEEDS = ("reference", "output", "floats")
FEW = True
TIER = Tier.SLOPES
ADVICE = (
    "Look for what depends on the graph: is_leaf, requires_grad, is_grad_enabled, hooks, a custom "
    "backward, tensors that are kept on self for it."
)


LONG = 150  # positions: more than blocks of 128 have
PATIENCE, FEWER = 0.5, 24  # seconds that such a call may take; positions where it takes longer
AGAIN = 1  # the call that is made once more


def run(probe: Probe) -> Failure | None:
    if not probe.thorough:
        raise Skip("it is looked at where sizes tell more")
    calm = probe.sample()
    one = probe.draw("none", longer=1 - probe.sizes.get("S", 1), alone=True)
    more = LONG if probe.expected_seconds(LONG) <= PATIENCE else FEWER
    calls = [calm[0], probe.draw("causal"), one, probe.draw("random", longer=more, alone=True)]
    found = probe.interleaved_gradients(calls, train="dropout" not in probe.contract.promises)
    failure = _steps(probe, calls, found)
    if failure or not far(found.after, calm[1]).any().item():
        return failure
    gap = far(found.after, calm[1])
    return Failure(
        message=f"after gradients in train mode, the output in eval mode is another than before "
        f"at {first_index(gap)}, by up to {(found.after - calm[1]).abs().max().item():.2g}"
    )


def _steps(probe: Probe, calls: list[Inputs], found: InterleavedGradients) -> Failure | None:
    """The calls one after the other, then what they have in common."""
    total: dict[str, Tensor] = {}
    for number, inputs in enumerate(calls):
        right = probe.expected_gradients(inputs, found.cotangents[number])
        total = {n: total[n] + g if n in total else g for n, g in right.parameters.items()}
        how = " amid a network"
        failure = None
        if not number and "dropout" not in probe.contract.promises:
            failure = _value(probe, inputs, found.outputs[number])
        failure = failure or slopes_differ(probe, found.inputs[number], right.inputs, how)
        if not number:
            frozen = " where all parameters are frozen"
            failure = failure or slopes_differ(probe, found.frozen, right.inputs, frozen)
        if failure:
            told = replace(failure, sizes=sizes_of(probe, inputs))
            return rather(probe, told, inputs, "dropout" not in probe.contract.promises)
        if number == AGAIN:
            total = {n: total[n] + g for n, g in right.parameters.items()}
    many = f", the sum of {len(calls) + 1} calls,"
    return slopes_differ(probe, found.parameters, total, many)


def _value(probe: Probe, inputs: Inputs, out: Tensor) -> Failure | None:
    """The output while gradients are recorded; where it is off without them, too, that is said."""
    right = probe.expected(inputs)
    failure = beside(probe, out, right, "with gradients enabled")
    return failure and (beside(probe, probe.call(inputs), right, "in eval mode") or failure)
