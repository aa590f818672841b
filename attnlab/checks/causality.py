"""With a causal mask, no output depends on later positions.

Wrong: a mask that is built for keys by queries and applied to queries by keys; a reshape that mixes
positions, which leaks through the layout although the mask is right.
Right: changing the input from position t on leaves the outputs before t as they were, for every t.

A module that takes a mask gets a causal one; one that promises to be causal gets none.
"""

from attnlab.checks.base import Failure, Probe, Steps, Tier, check
from attnlab.checks.shared.compare import far
from attnlab.checks.shared.explain import joined_heads
from attnlab.checks.shared.inputs import redraw
from attnlab.probe.answers import Skip


@check(
    title="The future does not leak",
    needs=("causal", "sequence"),
    tier=Tier.ORDER,
    advice=(
        "Change one position of the input and list the earlier outputs that move, for several "
        "positions: which rows they are says where to look."
    ),
)
def run(probe: Probe) -> Steps:
    length = probe.sizes.get("S", 1)
    if length < 2:
        raise Skip("a sequence of one has no future")
    at = probe.contract.output.index("S")
    inputs, before = probe.sample("causal")
    last = {*range(1, min(length, 6)), length - 1, probe.random_integer(1, length)}
    # The fewer positions change, the more their rows tell.
    later = probe.choose_ways(sorted(last, reverse=True))
    changed = [redraw(probe, inputs, "S", slice(t, length)) for t in later]
    outputs = yield changed
    for t, after in zip(later, outputs, strict=True):
        past = far(before, after).narrow(at, 0, t).movedim(at, 0).flatten(1).any(1)
        if past.any().item():
            gap = (before - after).abs().narrow(at, 0, t).max().item()
            seen = [i for i, leaks in enumerate(past.tolist()) if leaks]
            failure = Failure(
                message=f"inputs changed from position {t} on, and the output at {_named(seen)} "
                f"changed too, by up to {gap:.2g}"
            )
            return joined_heads(probe, failure, t, seen) if t == length - 1 else failure
    return None


def _named(positions: list[int]) -> str:
    """As `positions 0 to 5`, or each of them."""
    if len(positions) == 1:
        return f"position {positions[0]}"
    first, last = positions[0], positions[-1]
    if positions == list(range(first, last + 1)):
        return f"positions {first} to {last}"
    return f"positions {', '.join(map(str, positions))}"
