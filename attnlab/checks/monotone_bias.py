"""A penalty for distance falls with every step away, and each head has a slope of its own.

Wrong: the sign the other way round, which favours the farthest keys; one slope for all heads;
slopes over (B, S) where heads were meant; a bias that counts from the key's side.
Right: `-slope * distance` with slopes 2^(-8/H), 2^(-16/H), ...

What is compared are differences within one query's row: a constant per query is lost in the
softmax.
"""

from attnlab.checks.base import Failure, Probe, Skip, Tensor, Tier
from attnlab.checks.shared.positions import bias, offset

TITLE = "The bias falls with distance"
NEEDS = ("output", "monotone", "bias")
TIER = Tier.WEIGHTS
ADVICE = "Print the last query's row of the bias: 0 at its own position, lower at each key before."


def run(probe: Probe) -> Failure | None:
    position = probe.contract.position
    added = bias(probe)
    if min(added.shape[-2:]) < 2:
        raise Skip("with one query or one key nothing falls")
    before = added[:, -1].flip(-1)  # the last query's, from its own key backwards
    failure = _rises(before, "before", added.shape[-2] - 1)
    if failure is None and not (position is not None and position.causal):
        after = added[:, 0, offset(added) :]
        failure = _rises(after, "after", 0)
    return failure or _same_slopes(before)


def _rises(row: Tensor, side: str, query: int) -> Failure | None:
    """(H, distances): each value is below the one before."""
    bad = ~(row[:, 1:] < row[:, :-1])
    if not bad.any().item():
        return None
    head, d = bad.nonzero()[0].tolist()
    near, away = row[head, d].item(), row[head, d + 1].item()
    return Failure(
        message=f"head {head}, query {query}: the key {d + 1} positions {side} it gets a bias of "
        f"{away:.4g}, the one {d} away {near:.4g}; it should get less"
    )


def _same_slopes(row: Tensor) -> Failure | None:
    slopes = [round(v, 6) for v in row[:, 1].tolist()]
    for head, slope in enumerate(slopes):
        if slope in slopes[:head]:
            other = slopes.index(slope)
            return Failure(message=f"heads {other} and {head} have the same slope, {-slope:.4g}")
    return None
