"""Sequences beyond the longest are extended or refused, as the task says.

A module that extends itself gives the positions it knew the same rows as before, gives later ones
rows of their own, and goes on giving shorter sequences what it gave them.

Wrong: positions clamped to the last row; a table that starts again; a longer table that stretches
the old one; frequencies that a long call changes for good.
Right: row p depends on p alone, or the exception that the task names.

`M` in the sizes stands for the longest sequence.
"""

from attnlab.checks.base import Failure, Probe, Tier, check
from attnlab.checks.shared.inputs import change_along
from attnlab.checks.shared.positions import earlier_equal_row, plain_inputs, rows
from attnlab.probe.answers import Inputs, Skip, Tensor

MORE = 5


@check(
    title="Sequences beyond the longest are handled as stated",
    needs=("output", "sequence", "places", "beyond"),
    tier=Tier.REGIMES,
    advice=(
        "Call with one position more than the maximum, then with fewer again, and print the rows."
    ),
    once=True,
)
def run(probe: Probe) -> Failure | None:
    position = probe.contract.position
    assert position is not None
    longest = probe.sizes.get("M", probe.sizes["S"])
    if position.beyond == "error":
        if probe.exception_at({"S": longest + 1}) is None:
            return Failure(message=f"S={longest + 1} was accepted, but the longest is {longest}")
        return None
    longer = probe.variant({"S": longest + MORE})
    inputs = plain_inputs(longer)
    if inputs[longer.contract.inputs[0].name] is None:
        raise Skip("there is no input to lengthen")
    short, one = _first(longer, inputs, longest), _first(longer, inputs, longest + 1)
    before, more = rows(longer, short), rows(longer, one)
    table, after = rows(longer, inputs), rows(longer, short)
    return _compare(longer, before, table, after) or _next(longer, more, table)


def _compare(probe: Probe, before: Tensor, table: Tensor, after: Tensor) -> Failure | None:
    limit = probe.tolerance(before)
    known = len(before)
    for other, when in ((table[:known], "of a longer sequence"), (after, "after a longer one")):
        gap = (other - before).abs().flatten(1).amax(1)
        bad = ~(gap <= limit)
        if bad.any().item():
            return Failure(
                message=f"position {bad.tolist().index(True)} has another encoding {when} than "
                f"in one of {known}: they differ by up to {gap.max().item():.2g}"
            )
    for p in range(known, len(table)):
        q = earlier_equal_row(table, p)
        if q is not None:
            return Failure(message=f"beyond {known} positions, {p} gets the encoding of {q}")
    return None


def _next(probe: Probe, more: Tensor, table: Tensor) -> Failure | None:
    """One position beyond is where a length is compared with the wrong one of two neighbours."""
    gap = (more[-1] - table[len(more) - 1]).abs().max().item()
    if gap <= probe.tolerance(table):
        return None
    return Failure(
        message=f"position {len(more) - 1} gets another encoding in a sequence of {len(more)} than "
        f"in one of {len(table)}: they differ by up to {gap:.2g}"
    )


def _first(probe: Probe, inputs: Inputs, length: int) -> Inputs:
    return change_along(probe, inputs, "S", lambda t, at: t.narrow(at, 0, length).contiguous())
