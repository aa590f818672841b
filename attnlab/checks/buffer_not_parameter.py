"""A fixed table is a buffer: it moves with the module and no optimizer trains it.

Wrong: `self.pe = nn.Parameter(table)` is trained away; `self.pe = table` stays on the CPU when the
module moves.
Right: `self.register_buffer("pe", table)`.

Rests on the word of the process that ran the candidate, for the names.
"""

from attnlab.checks.base import Failure, Probe

TITLE = "The fixed table is a buffer"
NEEDS = ("buffers",)
AFTER = ("output-shape",)
ADVICE = "Register the table with register_buffer under the name that the task states."
TRUSTED = False


def run(probe: Probe) -> Failure | None:
    facts = probe.facts()
    buffers, parameters = facts.buffers, facts.held
    for name in probe.contract.buffers:
        if name in parameters:
            return Failure(message=f"{name} is a parameter, so an optimizer would train it")
        if name not in buffers:
            have = ", ".join(buffers) or "none"
            return Failure(message=f"there is no buffer called {name}; the buffers are: {have}")
        if name in facts.learning:
            return Failure(message=f"the buffer {name} requires a gradient, as if it were trained")
    return None
