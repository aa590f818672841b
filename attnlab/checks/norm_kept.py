"""Turning a vector keeps its length, and turning twice as long a one gives twice the result.

Rotary positions are rotations: each pair of columns turns by an angle. Nothing is stretched, and
nothing is added.

Wrong: `x * cos + x * sin` without the swap of the pair's two halves and the minus; a `rotate_half`
for one layout with angles for the other; angles that differ within a pair.
Right: (a, b) becomes (a cos - b sin, a sin + b cos), with one angle for the pair.
"""

from attnlab.checks.base import Failure, Probe, Tier, check
from attnlab.checks.shared.compare import failure_at, first_index
from attnlab.checks.shared.positions import first


@check(
    title="Turning keeps the length of vectors",
    needs=("output", "rotated"),
    tier=Tier.SAMPLES,
    advice="Turn (1, 0) and (0, 1) by hand: which two columns are a pair, and where is the minus?",
)
def run(probe: Probe) -> Failure | None:
    inputs = probe.draw("none")
    value = inputs[first(probe)]
    out = probe.call(inputs)
    if out.shape != value.shape:
        return Failure(message=f"{tuple(value.shape)} came back as {tuple(out.shape)}")
    before, after = value.norm(dim=-1), out.norm(dim=-1)
    bad = ~((before - after).abs() <= probe.tolerance(before))
    if bad.any().item():
        was, now = before[bad][0].item(), after[bad][0].item()
        return Failure(
            message=f"the vector at {first_index(bad)} had length {was:.4f} and has {now:.4f} now"
        )
    double = probe.call({**inputs, first(probe): 2 * value})
    return failure_at(
        ~((double - 2 * out).abs() <= 2 * probe.tolerance(out)),
        lambda where: (
            "vectors twice as long give something else than twice the result, first at "
            f"{where}: something is added or normalised"
        ),
    )
