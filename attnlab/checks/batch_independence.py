"""Each output of a batch is computed from its own sample alone.

Wrong: `view(B, H, S, hd)` where a transpose was needed, softmax over axis 0,
`nn.MultiheadAttention` without `batch_first=True`: samples of the batch mix, which a batch
of one never shows. The mask of the first sample used for all; positions counted along the batch.
Right: changing sample b, its mask included, changes output b and no other; rotated
samples give rotated outputs.
"""

from attnlab.checks.base import Failure, Probe, Steps, Tier, check
from attnlab.checks.shared.compare import failure_at, far, first_failure, size_from_two
from attnlab.checks.shared.inputs import change_along, redraw
from attnlab.probe.answers import Inputs, Tensor


@check(
    title="Samples of a batch do not mix",
    needs=("batch",),
    tier=Tier.SAMPLES,
    advice="Follow the batch axis through the trace: it must stay first and never be summed over.",
    few=True,
)
def run(probe: Probe) -> Steps:
    size = size_from_two(probe, "B", "a batch of one has nothing to mix with")
    at = probe.contract.output.index("B")
    inputs, before = probe.sample()
    samples = probe.choose_ways(range(min(size, 4)))
    other = probe.draw()
    changed = [_changed(probe, inputs, other, b) for b in samples]
    rotated = change_along(probe, inputs, "B", lambda value, axis: value.roll(1, axis))
    *outputs, turned = yield [*changed, rotated]
    failure = first_failure(
        _others_moved(far(before, after), at, b) for b, after in zip(samples, outputs, strict=True)
    )
    return failure or failure_at(
        far(before.roll(1, at), turned),
        lambda where: (
            f"rotating the batch by one sample did not rotate the outputs: they differ at {where}"
        ),
    )


def _others_moved(gap: Tensor, at: int, b: int) -> Failure | None:
    gap.select(at, b).fill_(False)
    return failure_at(
        gap,
        lambda where: (
            f"only sample {b} of the batch was changed, but the output at {where} changed too"
        ),
    )


def _changed(probe: Probe, inputs: Inputs, other: Inputs, b: int) -> Inputs:
    """Sample b with other values, and with another mask, other segments and positions."""
    found = redraw(probe, inputs, "B", slice(b, b + 1))
    for spec in probe.contract.inputs:
        if spec.role != "data" and inputs[spec.name] is not None and "B" in spec.axes:
            at, value = spec.axes.index("B"), inputs[spec.name].clone()
            value.select(at, b).copy_(other[spec.name].select(at, b))
            found[spec.name] = value
    return found
