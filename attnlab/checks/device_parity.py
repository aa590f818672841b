"""On a GPU the output equals that on the CPU.

Wrong: `torch.arange(S)` in forward, which lies on the CPU wherever x is; a table kept as a plain
attribute, which `.to(device)` does not move.
Right: `torch.arange(S, device=x.device)`; tables in buffers.

Made only where there is a GPU; so it is the one check that no shipped challenge expects. A
table that stays behind is seen on a CPU, too, by `buffer-not-parameter`.
"""

from attnlab.checks.base import Failure, Probe, Tier, check
from attnlab.probe.answers import Skip

ROUNDING = 2e-3  # of the largest value: matmuls of a GPU may round their operands to 10 bits


@check(
    title="The output is the same on other devices",
    needs=("output", "any-device"),
    tier=Tier.REGIMES,
    advice=(
        "Look for tensors made in forward without device=x.device, and for tables in attributes."
    ),
    once=True,
)
def run(probe: Probe) -> Failure | None:
    inputs, here = probe.sample()
    there = probe.call_on_device("cuda", inputs)
    if there is None:
        raise Skip("there is no GPU here")
    gap = (there - here).abs().max().item()
    limit = ROUNDING * max(1.0, here.abs().max().item())
    if not gap <= limit:
        return Failure(message=f"on the GPU the output differs from the CPU's by up to {gap:.2g}")
    return None
