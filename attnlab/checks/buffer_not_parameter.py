"""A fixed table is a buffer: it moves with the module and no optimizer trains it.

Wrong: `self.pe = nn.Parameter(table)` is trained away; `self.pe = table` stays on the CPU when the
module moves.
Right: `self.register_buffer("pe", table)`, and the output is computed from it.

The names are what the candidate's own process reports.
"""

from attnlab.checks.base import Failure, Probe, Tier, check
from attnlab.checks.shared.compare import far, first_failure, first_index


@check(
    title="The fixed table is a buffer",
    needs=("buffers",),
    tier=Tier.HEADS,
    advice="Register the table with register_buffer under the name that the task states.",
    trusted=False,
)
def run(probe: Probe) -> Failure | None:
    return first_failure(_misplaced(probe, name) for name in probe.contract.buffers)


def _misplaced(probe: Probe, name: str) -> Failure | None:
    facts = probe.module_facts()
    buffers = facts.buffers
    if name in facts.held:
        trained = ", so an optimizer would train it" if name in facts.trained else ", no buffer"
        return Failure(message=f"{name} is a parameter{trained}")
    if name not in buffers:
        have = ", ".join(buffers) or "none"
        return Failure(message=f"there is no buffer named {name}; the buffers are: {have}")
    if name in facts.learning:
        return Failure(message=f"the buffer {name} requires a gradient, as if it were trained")
    return _idle(probe, name)


def _idle(probe: Probe, name: str) -> Failure | None:
    """Whether the output ignores this buffer, or a part of it."""
    pair = probe.with_changed_buffer(name, probe.draw())
    if pair is None or pair[0].shape != pair[1].shape:
        return None
    contract, gap = probe.contract, far(*pair)
    table = contract.position is not None and contract.position.form in ("returned", "added")
    if gap.all().item() if table and len(contract.buffers) == 1 else gap.any().item():
        return None
    if gap.any().item():
        return Failure(
            message=f"changing {name} leaves the output at {first_index(~gap)} the same: "
            "a part of the table is stored elsewhere",
            advice="Read the whole table from the buffer: a copy does not move with the module.",
        )
    return Failure(
        message=f"the output does not depend on the buffer {name}: changing it changes nothing, "
        "so the table is stored elsewhere",
        advice="Read the table from the buffer: a copy stays behind when the module moves.",
    )
