"""The order of the heads makes no difference.

A head is its rows of the query, key and value projections and its columns of the output
projection. Permute the heads, and the output is the same sum.

Wrong: heads merged without the transpose, a projection cut in `hd` heads of H features, a head
that reads its neighbour's keys.
Right: head h uses rows h * hd to (h + 1) * hd everywhere.

Probed with the reference's weights, heads of all projections permuted alike; where keys have heads
of their own, groups of heads are permuted.
"""

from attnlab.checks.base import Failure, Probe, Tier, check
from attnlab.checks.shared.compare import failure_at
from attnlab.checks.shared.inputs import beyond_rounding
from attnlab.probe.answers import Skip, Tensor


@check(
    title="The order of the heads makes no difference",
    needs=("reference", "heads", "averaging", "output"),
    tier=Tier.HEADS,
    advice="Follow the features of one head from its projection to the output projection.",
    few=True,
)
def run(probe: Probe) -> Failure | None:
    heads = probe.sizes["H"]
    groups = probe.sizes.get("Hkv", heads)
    if groups < 2:
        raise Skip("one head has one order")
    weights = probe.weights()
    order = [1, 0, *range(2, groups)]  # no rotation: wrong wirings are often one themselves
    changed = {n: _permuted(n, w, order, heads) for n, w in weights.items()}
    inputs, before = probe.sample()
    right = probe.expected(inputs)
    if ((probe.expected(inputs, changed) - right).abs() > probe.tolerance(right)).any().item():
        raise Skip("the reference keeps its heads in another layout")
    (after,) = probe.with_weights([(changed, inputs)], back=weights)
    return failure_at(
        beyond_rounding(probe, before, after),
        lambda where: (
            "the heads of all projections were permuted, "
            f"{'key heads with the query heads of each ' * (groups < heads)}to {order}, and the "
            f"output changed at {where}, by up to "
            f"{(before - after).abs().max().item():.2g}"
        ),
    )


def _permuted(name: str, weight: Tensor, order: list[int], heads: int) -> Tensor:
    """A projection with its heads in another order; what is no projection stays."""
    layer, groups = name.split(".")[-2] if "." in name else "", len(order)
    if layer in ("q_proj", "k_proj", "v_proj") and weight.shape[0] % groups == 0:
        return weight.unflatten(0, (groups, -1))[order].flatten(0, 1)
    if layer == "qkv_proj" and weight.shape[0] % (3 * groups) == 0:
        return weight.unflatten(0, (3, groups, -1))[:, order].flatten(0, 2)
    if layer == "out_proj" and name.endswith("weight") and weight.shape[1] % heads == 0:
        return weight.unflatten(1, (groups, -1))[:, order].flatten(1, 2)
    return weight
