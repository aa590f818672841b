"""The weights by which values are mixed are not negative and sum to 1 for every query.

`constant-value` sees rows that sum to different numbers; rows that all sum to the same wrong number
show only in the weights themselves.

Wrong: weights scaled once more after the softmax, a softmax over heads or queries, weights mixed
after they were rounded.
Right: weights.sum(-1) is 1 in every row.

Read off the operations of a forward pass: a softmax's output, followed to the product with the
values. Where there is no such product (a fused kernel, an exponential normalised at the end)
nothing is said.
"""

from attnlab.checks.base import Failure, Mask, Probe, Skip, Tier, first_index

TITLE = "The weights of a query sum to 1"
NEEDS = ("averaging", "output")
FEW = True
TIER = Tier.SYMMETRY
ADVICE = "Print weights.sum(-1) right before the product with the values: which step changed it?"
TRUSTED = False


def run(probe: Probe) -> Failure | None:
    masks: tuple[Mask, ...] = ("random", "none")
    for mask in probe.choose_ways(masks):
        seen = probe.attention_internals(probe.draw(mask))
        if not seen.sums:
            raise Skip("no product of a softmax's weights with values is to be seen")
        if not seen.lowest >= 0:
            return Failure(
                message=f"values are mixed by a negative weight, {seen.lowest:.3g} ({mask} mask)"
            )
        for sums in seen.sums:
            bad = ~((sums - 1).abs() <= probe.tolerance(sums))
            if bad.any().item():
                worst = sums.flatten()[(sums - 1).abs().flatten().argmax()].item()
                return Failure(
                    message=f"the weights of row {first_index(bad)} do not sum to 1; the row that "
                    f"is furthest off sums to {worst:.4g} ({mask} mask)"
                )
    return None
