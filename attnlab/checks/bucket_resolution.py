"""Near distances have a bucket each, far ones share, and the edges are where they are stated.

With N buckets for a direction, the first half holds one distance each; the rest grow by a constant
ratio up to `distance`, and everything beyond shares the last. Without `causal` both directions have
half of the buckets.

Wrong: natural logarithms of the wrong ratio; the future in the buckets of the past; the absolute
distance where the sign was meant; one bucket too few before the logarithm starts.
Right: bucket n for n < N/2, then N/2 + floor(N/2 * log(n / (N/2)) / log(distance / (N/2))).

Two distances of one bucket must get equal biases, neighbours of different buckets different ones.
"""

import math

from attnlab.checks.base import Failure, Probe, Tensor, Tier
from attnlab.checks.shared.positions import plain_inputs
from attnlab.records import Position

TITLE = "Distances fall into their buckets"
NEEDS = ("output", "bucketed", "bias")
TIER = Tier.WEIGHTS
ADVICE = "Print the bucket of distances 0 to 20 and compare with the formula that the task states."
ONCE = True


def run(probe: Probe) -> Failure | None:
    position = probe.contract.position
    assert position is not None
    length = position.distance + 3
    wide = probe.variant({"Sq": length, "Sk": length, **({"B": 1} if "B" in probe.sizes else {})})
    out = wide.call(plain_inputs(wide))
    added = out.reshape(-1, *out.shape[-3:])[0]
    past = added[:, -1].flip(-1)  # of the last query: distance 0, 1, 2, ... backwards
    failure = _compare(past, position, "before")
    if failure is None and not position.causal:
        failure = _compare(added[:, 0], position, "after") or _one_sided(added)
    return failure


def bucket(n: int, position: Position) -> int:
    """The bucket of a distance in its own direction."""
    each = position.buckets if position.causal else position.buckets // 2
    exact = each // 2
    if n < exact:
        return n
    octaves = math.log(n / exact) / math.log(position.distance / exact)
    return min(each - 1, exact + int((each - exact) * octaves + 1e-9))


def _compare(row: Tensor, position: Position, side: str) -> Failure | None:
    """(H, distances): neighbours are equal within a bucket, and differ between two."""
    equal = (row[:, 1:] == row[:, :-1]).all(0).tolist()
    start = 1 if side == "after" else 0  # distance 0 belongs to the past
    for n in range(start, row.shape[-1] - 1):
        together = bucket(n, position) == bucket(n + 1, position)
        if equal[n] != together:
            come = "the same bias" if equal[n] else "different biases"
            want = "share a bucket" if together else "have buckets of their own"
            return Failure(
                message=f"keys {n} and {n + 1} positions {side} the query get {come}; with "
                f"{position.buckets} buckets up to distance {position.distance} they {want}"
            )
    return None


def _one_sided(added: Tensor) -> Failure | None:
    middle = added.shape[-1] // 2
    if (added[:, middle, middle - 1] == added[:, middle, middle + 1]).all().item():
        return Failure(message="the key before a query and the one after it get the same bias")
    return None
