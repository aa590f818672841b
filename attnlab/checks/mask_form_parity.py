"""A boolean mask and the additive one that says the same give the same output.

An additive mask is added to the scores: 0 where a key may be attended to, -inf or a very negative
number where it may not.

Wrong: `masked_fill(mask, -inf)` with a float mask, which forbids what is not 0; `mask.bool()`, for
which -inf and every bias are True; `mask == 0`, which takes a bias for a hidden key; a float mask
multiplied in.
Right: `scores + mask` for a float mask, `masked_fill` for a boolean one.

Probed with -inf and with -1e9, where the contract says that the mask may be `additive`; also in
train mode, unless it drops values at random, in the dtypes of the contract, and by gradients. Where
weights are said to be averages, one number more on all keys of a query must change nothing, and
another on each key must change something. How much, and what gradient the mask gets, is compared
with a reference that takes such masks: the solution of a challenge.
"""

from dataclasses import replace

from attnlab.catalogue.contract_facts import has_query_axis, mask_input
from attnlab.checks.base import Failure, Probe, Steps, Tier, check
from attnlab.checks.shared.compare import failure_at, first_failure
from attnlab.checks.shared.inputs import allowed, beyond_rounding, dtype_mismatch, gradient_mismatch
from attnlab.probe.answers import Inputs, Mask, Skip, Tensor

LOWEST = (float("-inf"), -1e9)
BIAS = 2.0
TITLE = "Boolean and additive masks agree"
NUMBERS = "Add a mask of floats to the scores: numbers other than 0 and -inf are biases."


@check(
    id="mask-form-parity",
    title=TITLE,
    needs=("mask", "additive", "floats"),
    tier=Tier.WEIGHTS,
    advice="Look at the branch on mask.dtype: a float mask is added, a boolean one is filled in.",
    few=True,
)
def run(probe: Probe) -> Steps:
    spec = mask_input(probe.contract)
    kinds: tuple[Mask, ...] = (
        ("random", "causal") if has_query_axis(spec) else ("random", "padding")
    )
    ways = [(kind, low, *probe.sample(kind)) for kind in kinds for low in LOWEST]
    given = [
        {**inputs, spec.name: _additive(probe, inputs[spec.name] == spec.forbids, low)}
        for _, low, inputs, _ in ways
    ]
    outputs = yield given
    failure = first_failure(
        _differs(probe, boolean, out, f"{kind} mask as floats, 0 and {low:g}")
        for (kind, low, _, boolean), out in zip(ways, outputs, strict=True)
    )
    (_, _, inputs, boolean), added = ways[0], given[0]
    failure = failure or _trains(probe, inputs, added, boolean) or _cast(probe, added, boolean)
    averages = "averaging" in probe.contract.promises
    return failure or (_biased(probe, inputs, added, boolean) if averages else None)


def _differs(probe: Probe, boolean: Tensor, out: Tensor, mask: str) -> Failure | None:
    return failure_at(
        beyond_rounding(probe, boolean, out),
        lambda at: (
            f"the same {mask}, gave another output at {at} than as booleans: they differ by "
            f"up to {(boolean - out).abs().max().item():.2g}"
        ),
    )


def _biased(probe: Probe, inputs: Inputs, added: Inputs, boolean: Tensor) -> Failure | None:
    """A number for each query: softmax does not see it, and code that looks for 0 does. Numbers
    for all keys it must see."""
    name = mask_input(probe.contract).name
    mask, choice = added[name], (allowed(probe, inputs).sum(-1) > 1).any().item()
    given = [mask + probe.noise(mask[..., :1], BIAS), mask + probe.noise(mask, BIAS)]
    same, other = probe.calls([{**added, name: biased} for biased in given])
    failure = failure_at(
        beyond_rounding(probe, boolean, same),
        lambda where: (
            "one number more for all keys of a query, in a mask of floats, changes nothing "
            f"of a softmax, and gave another output at {where}"
        ),
        NUMBERS,
    )
    if failure or not choice or beyond_rounding(probe, boolean, other).any().item():
        return failure
    return Failure(
        message="a mask of floats with another number for each key that may be seen gave the same "
        "output as one with 0 there: the numbers are not added",
        advice=NUMBERS,
    )


def _trains(probe: Probe, inputs: Inputs, added: Inputs, boolean: Tensor) -> Failure | None:
    if "dropout" in probe.contract.promises:
        return None
    failure = failure_at(
        beyond_rounding(probe, boolean, probe.call(added, train=True)),
        lambda where: (
            f"in train mode a mask of floats gave another output at {where} "
            "than the same one of booleans in eval mode"
        ),
    )
    if failure or not probe.confirming:  # there is nothing to compare with
        return failure
    found = probe.gradients(added)
    right = probe.expected_gradients(inputs, found.cotangent)
    how = " under a mask of floats"
    failure = gradient_mismatch(probe, found.parameters, right.parameters, how)
    return failure or gradient_mismatch(probe, found.inputs, right.inputs, how)


@check(
    id="float-mask-values",
    title="A mask of floats weighs as much as in the reference",
    needs=("reference", "mask", "additive", "floats"),
    tier=Tier.LEARNING,
    advice=NUMBERS,
    few=True,
)
def _biases_weigh(probe: Probe) -> Failure | None:
    if not probe.reference_takes_floats:
        raise Skip("the reference takes boolean masks alone")
    spec, (inputs, _) = mask_input(probe.contract), probe.sample()
    mask = _additive(probe, inputs[spec.name] == spec.forbids, LOWEST[0])
    biased = {**inputs, spec.name: mask + probe.noise(mask, BIAS)}
    out, right = probe.call(biased), probe.expected(biased)
    failure = failure_at(
        beyond_rounding(probe, right, out),
        lambda where: (
            "with biases in a mask of floats, numbers besides 0 and -inf, the output differs from "
            f"the reference's at {where}, by up to {(right - out).abs().max().item():.2g}"
        ),
    )
    if failure:
        return failure
    found = probe.gradients(biased)
    wanted = probe.expected_gradients(biased, found.cotangent)
    return gradient_mismatch(probe, found.inputs, wanted.inputs, " under a mask of floats")


def _cast(probe: Probe, added: Inputs, boolean: Tensor) -> Failure | None:
    dtypes = probe.contract.dtypes
    found = zip(dtypes, probe.cast_calls(dtypes, [added]) if dtypes else (), strict=True)
    failure = first_failure(dtype_mismatch(out, boolean, dtype) for dtype, (out,) in found)
    return failure and replace(failure, message=f"{failure.message}, under a mask of floats")


def _additive(probe: Probe, forbidden: Tensor, low: float) -> Tensor:
    return (probe.noise(forbidden.float()) * 0).masked_fill(forbidden, low)
