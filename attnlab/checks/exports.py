"""torch.export captures the module as one graph, whose output is the same.

Wrong: `if scores.max() > 0:` in forward, which depends on values; a Python list that grows from
call to call; `.item()` and NumPy on the way.
Right: tensor operations, `torch.where` for choices between values.

Made on demand, or where the contract promises `exportable`: the compiler takes seconds to load.
"""

from attnlab.checks.base import Failure, Probe, Tier, check
from attnlab.checks.shared.compare import failure_at, far


@check(
    title="The module can be exported",
    needs=("output",),
    tier=Tier.REGIMES,
    advice="Run torch.export.export(module, args) by itself: its message names the line.",
    once=True,
    on_demand=True,
    promise="exportable",
)
def run(probe: Probe) -> Failure | None:
    inputs, out = probe.sample()
    return failure_at(
        far(out, probe.call_exported(inputs)),
        lambda where: f"the output of the exported program differs, first at {where}",
    )
