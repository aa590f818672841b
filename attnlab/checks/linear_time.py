"""Twice the length takes twice the work, and not four times.

Wrong: scores of all queries with all keys, in one tensor or a few rows at a time, where only those
in reach are asked for; a fused kernel with a mask that hides the rest.
Right: keys that are sliced to what a query, or a block of queries, may see.

What each line makes is counted, at a length and at twice that length: the numbers in all tensors,
and the scores inside of fused attention. Read off the operations as the process that ran the
candidate tells them.
"""

from collections import Counter
from math import prod

from attnlab.checks.base import Failure, Probe, Tier, check

LENGTH = 260  # more than one of the blocks that people choose
MOST = 3.2  # times the numbers


@check(
    title="Work grows with the length, not with its square",
    needs=("output", "linear-time"),
    tier=Tier.ASIDE,
    advice="Give each query, or each block of queries, only the keys that it may see.",
    trusted=False,
    once=True,
)
def run(probe: Probe) -> Failure | None:
    short, long = (_numbers_by_line(probe, length) for length in (LENGTH, 2 * LENGTH))
    for line, count in long.items():
        if short[line] >= LENGTH and count > MOST * short[line]:
            return Failure(
                message=f"line {line} makes {short[line]} numbers for {LENGTH} positions and "
                f"{count} for twice as many, {count / short[line]:.2g} times as many"
            )
    return None


def _numbers_by_line(probe: Probe, length: int) -> Counter[int]:
    """Booleans are not counted: a mask of them takes little."""
    probe = probe.variant({"S": length})
    ops, found = probe.operations(probe.draw("random")), Counter[int]()
    for op in ops:
        if op.op == "scaled_dot_product_attention":
            found[op.line] += prod(op.shape[:-1]) * ops[op.parents[1]].shape[-2]
        elif op.dtype != "bool" and not op.view:
            found[op.line] += prod(op.shape)
    return found
