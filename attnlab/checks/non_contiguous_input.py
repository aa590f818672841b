"""How an input lies in memory changes nothing: strides are not values.

A transposed tensor, a slice or an expanded one has the same values in another order of memory, and
callers pass such tensors every day.

Wrong: `x.view(B * S, D)` on the argument itself, which raises for a transposed x;
`x.storage()` and `as_strided`, which read memory and not the tensor; `contiguous()` only where the
last stride is not 1.
Right: `reshape`, `flatten`, or `contiguous()` first.

Inputs are transposed in memory, cut out of larger tensors, both for a batch and for one sample
alone, and expanded along the batch where all samples have the same mask.
"""

from attnlab.checks.base import Failure, Probe, Tier, check
from attnlab.checks.shared.compare import failure_at, far, first_failure
from attnlab.checks.shared.inputs import at_sizes_of, first_along
from attnlab.probe.answers import Inputs, Tensor

SAID = {
    "turned": "every input transposed in memory",
    "cropped": "every input cut out of a larger tensor",
    "expanded": "what all samples have in common expanded along the batch",
}


@check(
    title="Strides of the input change nothing",
    needs=("output",),
    tier=Tier.SAMPLES,
    advice=(
        "Use reshape or flatten on what the caller passed; view needs the memory to be in order."
    ),
    few=True,
)
def run(probe: Probe) -> Failure | None:
    inputs, before = probe.sample()
    alone, alike = probe.draw(alone=True), _alike(probe, inputs)
    ways = ("turned", "cropped", "turned", "cropped", "expanded")
    given = [inputs, inputs, alone, alone, alike]
    one, same = probe.calls([alone, alike])
    found = zip(
        ways, given, [before, before, one, one, same], probe.strided_calls(given, ways), strict=True
    )
    return first_failure(
        at_sizes_of(probe, asked, _differs(far(usual, out), SAID[way]))
        for way, asked, usual, out in found
    )


def _differs(gap: Tensor, strides: str) -> Failure | None:
    return failure_at(
        gap,
        lambda at: (
            f"the same values at other strides ({strides}) gave another output, first at {at}"
        ),
    )


def _alike(probe: Probe, inputs: Inputs) -> Inputs:
    """Masks and the like are those of the first sample for all; data stay."""
    shared = [i.name for i in probe.contract.inputs if i.role != "data" and i.axes[0] == "B"]
    return inputs | {n: first_along(inputs[n], 0) for n in shared if inputs[n] is not None}
