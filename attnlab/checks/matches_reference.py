"""With the same weights and inputs, the output equals the reference's.

The reference is computed in float64 with weights that were drawn for this run and copied into both.
Only parameters are copied, never buffers: a wrong table must stay wrong.

Wrong: `scores * hd ** 0.5` where a division was meant: every other property holds, values differ.
Right: the largest difference stays within what float32 rounding explains.

A call with another length must give the same, since a mask or a table may be kept from the call
before.

Where the parameters have other names or layouts, the weights are put in by a map: declared, or
found by names and shapes and proven by equality. Without one nothing can be compared, and that is
what is said: it is not a failure.
"""

from attnlab.checks.base import Failure, Mask, Probe, masks, said
from attnlab.checks.pieces import beside
from attnlab.checks.probe import SMALL

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


def run(probe: Probe) -> Failure | None:
    for mask, scale in _kinds(probe):
        inputs, out = probe.sample(mask, scale)
        failure = beside(probe, out, probe.expected(inputs), said(probe.contract, mask))
        if failure:
            return failure
    return _longer(probe) if probe.thorough else None


def _kinds(probe: Probe) -> list[tuple[Mask, float]]:
    """Masks and scales of the inputs."""
    if not probe.thorough:
        return [(mask, 1.0) for mask in masks(probe.contract, "random", "none")]
    usual = masks(probe.contract, "random", "causal", "none")
    return [*((mask, 1.0) for mask in usual), ("random", SMALL)]


def _longer(probe: Probe) -> Failure | None:
    """What was kept from the calls before must not be used for a call of another length."""
    kinds = masks(probe.contract, "random", "none")
    drawn = [probe.draw(mask, longer=2) for mask in kinds]
    for mask, inputs, out in zip(kinds, drawn, probe.calls(drawn), strict=True):
        how = f"{said(probe.contract, mask)}, two positions more, same module"
        failure = beside(probe, out, probe.expected(inputs), how)
        if failure:
            return failure
    return None
