"""One sample, one position and the longest sequence work like any other size.

Wrong: `squeeze()` without an axis, which drops a batch of one as well; `if S > 1` around the mask;
a table with one row too few for `max_len`, or one too many.
Right: sample b alone gives what it gave in the batch.

`M` in the sizes stands for the longest sequence.
"""

from attnlab.checks.base import Failure, Probe, Tier, describe, expected_shape, far, first_index

TITLE = "The smallest and largest sizes work"
NEEDS = ("output",)
TIER = Tier.REGIMES
ADVICE = "Print the shapes of this call step by step: an axis of size 1 has gone, or is too many."
ONCE = True


def run(probe: Probe) -> Failure | None:
    return _alone(probe) or _sizes(probe)


def _alone(probe: Probe) -> Failure | None:
    """The last sample of a batch, alone in a batch of one."""
    axes = probe.contract.output
    size = probe.sizes.get("B", 1)
    if size < 2 or "B" not in probe.contract.vary or "B" not in axes:
        return None
    inputs, whole = probe.sample()
    one = dict(inputs)
    for spec in probe.contract.inputs:
        value = inputs[spec.name]
        if value is not None and "B" in spec.axes:
            one[spec.name] = value.narrow(spec.axes.index("B"), size - 1, 1).contiguous()
    whole = whole.narrow(axes.index("B"), size - 1, 1)
    out = probe.call(one)
    if out.shape != whole.shape:
        return Failure(
            message=f"a batch of one gave the shape {tuple(out.shape)}, expected "
            f"{tuple(whole.shape)}"
        )
    gap = far(whole, out)
    if gap.any().item():
        return Failure(
            message=f"sample {size - 1} alone gave another output than in the batch of {size}, "
            f"first at {first_index(gap)}"
        )
    return None


def _sizes(probe: Probe) -> Failure | None:
    """One position, and as many as there may be."""
    if "S" not in probe.contract.vary or "S" not in probe.contract.sizes:
        return None
    for length in sorted({1, probe.sizes.get("M", 1)}):
        other = probe.variant({"S": length})
        out = other.call(other.draw("random"))
        if tuple(out.shape) != expected_shape(other):
            return Failure(
                message=f"the output is {describe(out, other)}, expected {expected_shape(other)}"
            )
        if not out.isfinite().all().item():
            return Failure(message=f"a sequence of {length} gave NaN or infinity")
    return None
