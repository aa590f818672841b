"""Positions are counted along the sequence, not along the batch.

Equal samples get equal outputs, since where a sample stands in a batch means nothing; and what is
added to x is the same for every sample.

Wrong: `x + self.pe[: x.size(0)]` on x of shape (B, S, D): each *sample* gets a row of the table,
and all its positions the same one. It runs whenever B fits the table.
Right: `x + self.pe[:, : x.size(1)]`, the table broadcast over the batch.
"""

from attnlab.checks.base import Failure, Probe, Skip, Tier, far

TITLE = "The place in a batch means nothing"
NEEDS = ("output", "batch", "ordered")
TIER = Tier.SAMPLES
ADVICE = "Look at the index of the table: x.size(0) is the batch; positions run along x.size(1)."


def run(probe: Probe) -> Failure | None:
    if probe.sizes.get("B", 1) < 2:
        raise Skip("a batch of one has one sample only")
    inputs = probe.draw("none")
    for spec in probe.contract.inputs:
        value = inputs[spec.name]
        if "B" in spec.axes and value is not None:
            axis = spec.axes.index("B")
            inputs[spec.name] = value.narrow(axis, 0, 1).expand_as(value).contiguous()
    out = probe.call(inputs).movedim(probe.contract.output.index("B"), 0)
    gap = far(out, out[:1].expand_as(out)).flatten(1).any(1)
    if gap.any().item():
        b = gap.tolist().index(True)
        largest = (out[b] - out[0]).abs().max().item()
        return Failure(
            message=f"all samples of the batch were equal, and the output of sample {b} differs "
            f"from that of sample 0 by up to {largest:.2g}"
        )
    return None
