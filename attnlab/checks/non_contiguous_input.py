"""How an input lies in memory changes nothing: strides are not values.

A transposed tensor, a slice or an expanded one has the same values in another order of memory, and
callers pass such tensors every day.

Wrong: `x.view(B * S, D)` on the argument itself, which raises for a transposed x;
`x.storage()` and `as_strided`, which read memory and not the tensor.
Right: `reshape`, `flatten`, or `contiguous()` first.
"""

from attnlab.checks.base import Failure, Probe, far, first_index

TITLE = "Strides of the input change nothing"
NEEDS = ("output",)
FEW = True
AFTER = ("output-shape", "finite", "deterministic-eval", "input-unchanged")
ADVICE = "Use reshape or flatten on what the caller passed; view needs the memory to be in order."


def run(probe: Probe) -> Failure | None:
    inputs, before = probe.sample()
    gap = far(before, probe.strided(inputs))
    if gap.any().item():
        return Failure(
            message="the same values at other strides (every input transposed in memory) gave "
            f"another output, first at {first_index(gap)}"
        )
    return None
