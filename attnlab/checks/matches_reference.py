"""With the same weights and inputs, the output equals the reference's.

The reference is computed in float64 with weights that were drawn for this run and copied into both.
Only parameters are copied, never buffers: a wrong table must stay wrong.

Wrong: `scores * hd ** 0.5` where a division was meant: every other property holds, values differ.
Right: the largest difference stays within what float32 rounding explains.

Train mode must give the same, unless the module promises dropout; and so must a call with another
length, since a mask or a table may be kept from the call before.

Where the parameters have other names or layouts, the weights are put in by a map: declared, or
found by names and shapes and proven by equality. Without one nothing can be compared, and that is
what is said: it is not a failure.
"""

from attnlab.checks.base import Failure, Inputs, Probe, describe, first_index, masks

TITLE = "Values equal the reference's"
NEEDS = ("reference", "output")
AFTER = (
    "output-shape",
    "finite",
    "input-unchanged",
    "deterministic-eval",
    "batch-independence",
    "causality",
    "mask-effect",
    "constant-value",
    "permutation-equivariance",
    "fully-masked-row",
    "formula-match",
    "reach",
    "padding-invariance",
    "mask-form-parity",
    "row-sums",
    "nan-in-masked-slots",
    "head-permutation",
    "logit-scale",
    "grouped-equals-expanded",
    "cross-context",
    "packed-isolation",
    "prefill-equals-decode",
    "chunked-prefill",
    "beam-reorder",
    "second-call",
)
ADVICE = (
    "Everything flows but a value is off: recompute the scores of one query by hand and compare."
)
SCALES = (1.0, 0.1)  # of the inputs: where softmax is sharp, and where it is nearly flat


def run(probe: Probe) -> Failure | None:
    for mask in masks(probe.contract, "random", "causal", "none"):
        for scale in SCALES if mask == "random" else SCALES[:1]:
            failure = _compare(probe, probe.draw(mask, scale), f"{mask} mask")
            if failure:
                return failure
    # What was kept from the calls before must not be used for a call of another length.
    failure = _compare(probe, probe.draw("random", longer=2), "two positions more, same module")
    if failure or "dropout" in probe.contract.promises:
        return failure
    return _compare(probe, probe.draw("random"), "train mode", train=True)


def _compare(probe: Probe, inputs: Inputs, how: str, train: bool = False) -> Failure | None:
    expected = probe.expected(inputs)
    out = probe.call(inputs, train)
    if out.shape != expected.shape:  # that may change between calls; empty hides all
        return Failure(
            message=f"the output is {describe(out, probe)}, the reference's "
            f"{tuple(expected.shape)} ({how})"
        )
    gap = (out.double() - expected).abs()
    bad = ~(gap <= probe.tolerance(expected))
    if not bad.any().item():
        return None
    return Failure(
        message=f"the output differs from the reference's at {first_index(bad)} and in "
        f"{bad.double().mean().item():.0%} of its values, by up to {gap.max().item():.2g} ({how})"
    )
