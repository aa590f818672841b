"""With the same weights and inputs, the gradients equal the reference's, also inside a network.

A module can compute the right values and still not learn: a step that leaves the graph has no
gradient, or a wrong one. What is compared is the gradient of the output times a random cotangent,
for every floating-point input and every parameter. A gradient that is missing where the reference
has one counts as zero. Once inputs require no gradient, as those of a first layer.

Wrong: `weights.detach() @ v`, a softmax in NumPy, `torch.no_grad()` around the scores, `.data`.
Right: every step is an operation that autograd can follow.

Gradients are finite: a NaN that `nan_to_num` removes from the output is still in the backward pass,
and the square root of an exact zero has an infinite slope.

Every parameter gets a gradient: a projection that is built and never called gets none. A gradient
of zeros counts as none for a matrix; the bias of the keys may have one, since softmax removes it.

Inside a network inputs are no leaves of the graph nor contiguous, the incoming gradient is a view,
and may be large; the layer is called again before backward, gradients accumulate, and parameters
may be frozen. A residual connection around it shares the incoming gradient. Wrong: a custom
`backward` that calls `view` on its gradient, or `mul_`, which the residual's gradient is as well;
weights kept on `self` for backward; `if not x.is_leaf: x = x.detach()`; `zero_grad()` in forward;
a hook that clamps gradients. Right: `ctx.save_for_backward`, and a forward that does not depend on
the graph.
"""

from dataclasses import replace

from attnlab.checks.base import Failure, Probe, Tier, check
from attnlab.checks.shared.compare import failure_at, far, mask_kinds
from attnlab.checks.shared.inputs import (
    by_hand,
    cast_gradient_mismatch,
    gradient_mismatch,
    mismatch,
    prefer_output,
    sizes_of,
)
from attnlab.probe.answers import Inputs, InterleavedGradients, Mask, Skip, Tensor

TITLE = "Gradients equal the reference's"
ENOUGH = 3  # positions: with one, a softmax has nothing to choose and no gradient
LONG = 136  # positions: more than blocks of 128 have
PATIENCE, FEWER = 0.5, 24  # seconds that such a call may take; positions where it takes longer
SHARE = 0.02  # of the largest gradient that rounding to half precision explains
AGAIN = 1  # the call that is made once more


@check(
    id="gradients-finite",
    title="Gradients are finite",
    needs=("output",),
    tier=Tier.REGIMES,
    advice=(
        "Use torch.autograd.set_detect_anomaly(True) on this call to see which backward step it is."
    ),
    few=True,
)
def _finite_gradients(probe: Probe) -> Failure | None:
    _, found = probe.gradient_sample()
    if not found.inputs and not found.parameters:
        raise Skip("there is nothing to differentiate by")
    for name, gradient in (*found.inputs.items(), *found.parameters.items()):
        bad = int((~gradient.isfinite()).sum().item())
        if bad:
            return Failure(
                message=f"{bad} of {gradient.numel()} values of the gradient of {name} are NaN or "
                "infinite"
            )
    return None


@check(
    id="gradients-match",
    title="Gradients equal the reference's",
    needs=("reference", "output"),
    tier=Tier.LEARNING,
    advice=(
        "Look for detach, no_grad, .data, .item or NumPy on the way from this tensor to the output."
    ),
    few=True,
)
def _equal_gradients(probe: Probe) -> Failure | None:
    kinds = mask_kinds(probe.contract, "random", "causal")
    for mask in dict.fromkeys((*kinds, "none")):
        inputs, found = probe.gradient_sample(mask)
        right = probe.expected_gradients(inputs, found.cotangent)
        if not right.parameters and not right.inputs:
            raise Skip("there is nothing to differentiate by")
        still = " where inputs require none" if found.still else ""
        how = f"{still}{' in train mode' if found.train else ''}"
        failure = gradient_mismatch(probe, found.parameters, right.parameters, how)
        if not found.still:
            failure = failure or gradient_mismatch(probe, found.inputs, right.inputs, how)
        if failure:
            return prefer_output(probe, by_hand(probe, failure), inputs, found.train)
    return None


@check(
    id="float64-gradients",
    title="Gradients in float64 equal the reference's",
    needs=("reference", "output", "dtypes"),
    tier=Tier.LEARNING,
    advice="Compare small constants with the task's, such as the eps of a norm.",
    once=True,
)
def _float64_gradients(probe: Probe) -> Failure | None:
    if "float64" not in probe.contract.dtypes:
        raise Skip("the contract does not name float64")
    return cast_gradient_mismatch(probe, ["float64"], mask_kinds(probe.contract, "random")[-1])


@check(
    id="every-parameter-reached",
    title="Every parameter takes part",
    needs=("output",),
    tier=Tier.SLOPES,
    advice=(
        "Search forward for the name of this parameter: is it used, and on the way to the output?"
    ),
    trusted=False,
    few=True,
)
def _every_parameter(probe: Probe) -> Failure | None:
    trained = probe.module_facts().trained
    if not trained:
        raise Skip("the module has no parameter that is trained")
    if any(probe.sizes.get(s, ENOUGH) < ENOUGH for s in ("S", "Sq", "Sk")):
        raise Skip("too few positions for every weight to matter")
    left = set(trained)
    kinds: tuple[Mask, ...] = ("random", "none")
    for mask in kinds:  # one may hide what another shows
        for name, gradient in probe.gradient_sample(mask)[1].parameters.items() if left else ():
            if gradient.dim() < 2 or gradient.count_nonzero().item():
                left.discard(name)
    missing = [name for name in trained if name in left]
    if not missing:
        return None
    more = f" (nor {', '.join(missing[1:4])})" if len(missing) > 1 else ""
    return Failure(
        message=f"no gradient reaches the parameter {missing[0]}{more}, so it never learns"
    )


@check(
    id="in-a-network",
    title="Gradients are correct inside a network",
    needs=("reference", "output", "floats"),
    tier=Tier.SLOPES,
    advice=(
        "Look for what depends on the graph: is_leaf, requires_grad, is_grad_enabled, "
        "hooks, a custom backward, tensors that are kept on self for it."
    ),
    few=True,
)
def _in_a_network(probe: Probe) -> Failure | None:
    if not probe.thorough:
        raise Skip("it is looked at where sizes tell more")
    calm = probe.sample()
    one = probe.draw("none", longer=1 - probe.sizes.get("S", 1), alone=True)
    more = LONG if probe.expected_seconds(LONG) <= PATIENCE else FEWER
    calls = [calm[0], probe.draw("causal"), one, probe.draw("random", longer=more, alone=True)]
    found = probe.interleaved_gradients(calls, train="dropout" not in probe.contract.promises)
    return (
        _each_call(probe, calls, found)
        or _changed_skip(found)
        or failure_at(
            far(found.after, calm[1]),
            lambda where: (
                "after gradients in train mode, the output in eval mode is another than "
                f"before at {where}, by up to {(found.after - calm[1]).abs().max().item():.2g}"
            ),
        )
    )


def _each_call(probe: Probe, calls: list[Inputs], found: InterleavedGradients) -> Failure | None:
    """The calls one after the other, then what they have in common."""
    total: dict[str, Tensor] = {}
    busy = "dropout" not in probe.contract.promises
    for number, inputs in enumerate(calls):
        right = probe.expected_gradients(inputs, found.cotangents[number])
        total = {n: total[n] + g if n in total else g for n, g in right.parameters.items()}
        failure = _wrong_output(probe, inputs, found.outputs[0]) if busy and not number else None
        failure = failure or gradient_mismatch(
            probe, found.inputs[number], right.inputs, " inside a network"
        )
        if not number:
            frozen = " where all parameters are frozen"
            failure = failure or gradient_mismatch(probe, found.frozen, right.inputs, frozen)
        if failure:
            failure = replace(failure, sizes=sizes_of(probe, inputs))
            return prefer_output(probe, failure, inputs, busy)
        if number == AGAIN:
            total = {n: total[n] + g for n, g in right.parameters.items()}
    many = f", the sum of {len(calls) + 1} calls,"
    return gradient_mismatch(probe, found.parameters, total, many)


def _changed_skip(found: InterleavedGradients) -> Failure | None:
    """A backward that writes to the gradient that it is given writes to that of others."""
    for number, gradient in found.skips.items():
        gap = (gradient - found.cotangents[int(number)]).abs().max().item()
        if gap > SHARE * found.cotangents[int(number)].abs().max().item():
            return Failure(
                message="a skip connection around the module gets a wrong gradient, by up to "
                f"{gap:.2g}: backward changes the tensor that it is given in place",
                advice="Write `grad * scale` in place of `grad.mul_(scale)`: others have it, too.",
            )
    return None


def _wrong_output(probe: Probe, inputs: Inputs, out: Tensor) -> Failure | None:
    """The output while gradients are recorded; where it is off without them, too, that is said."""
    right = probe.expected(inputs)
    failure = mismatch(probe, out, right, "with gradients enabled")
    return failure and (mismatch(probe, probe.call(inputs), right, "in eval mode") or failure)
