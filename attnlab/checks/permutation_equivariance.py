"""Without positions, attention does not know the order: permuted inputs give permuted outputs.

Self-attention is permutation-*equivariant*: put the positions of the input in another order, and
the mask's rows and columns with them, and the outputs are the same ones in that order. (It is not
permutation-*invariant*: the outputs do move.) Order enters by a positional encoding alone.

Wrong: a reshape that lets positions trade features, a mask indexed [key, query], a position bias or
a cached state where none was meant: what an output is depends on where it stands.
Right: every position is treated alike, and only inputs and mask tell positions apart.

A module that builds a causal mask itself knows the order by that mask, so it is not looked at.
"""

from attnlab.catalogue.contract_facts import key_axis
from attnlab.checks.base import Failure, Probe, Steps, Tier, check
from attnlab.checks.shared.compare import far, first_index, size_from_two
from attnlab.probe.answers import Inputs, Mask, Skip, Tensor


@check(
    title="Permuted positions give permuted outputs",
    needs=("averaging", "sequence"),
    tier=Tier.SYMMETRY,
    advice=(
        "Compare the two runs step by step: the first step whose rows are not the same rows in "
        "another order treats positions differently. Look for reshapes, biases and [key, query] "
        "indices there."
    ),
    few=True,
)
def run(probe: Probe) -> Steps:
    length = size_from_two(probe, "S", "one position has one order")
    if "causal" in probe.contract.promises:
        raise Skip("a causal module knows the order by its own mask")
    at = probe.contract.output.index("S")
    first = probe.random_integer(0, length - 1)
    neighbours = [*range(first), first + 1, first, *range(first + 2, length)]
    ways: tuple[tuple[Mask, list[int]], ...] = (
        ("random", _shuffled(probe, length)),
        ("none", neighbours),
    )
    drawn = [(mask, order, *probe.sample(mask)) for mask, order in probe.choose_ways(ways)]
    outputs = yield [_permute(probe, inputs, order) for _, order, inputs, _ in drawn]
    for (mask, order, _, before), out in zip(drawn, outputs, strict=True):
        expected = _permuted(before, at, order)
        gap = far(out, expected)
        if gap.any().item():
            where = gap.nonzero()[0].tolist()[at]
            return Failure(
                message=f"positions were put in the order {order}, and the output at "
                f"{first_index(gap)} is not what position {order[where]} gave before: they differ "
                f"by up to {(out - expected).abs().max().item():.2g}"
                f"{probe.with_mask(mask)}"
            )
    return None


def _shuffled(probe: Probe, length: int) -> list[int]:
    """A random order that moves something. A mere shift or reversal would keep distances."""
    order = list(range(length))
    for last in range(length - 1, 0, -1):
        other = probe.random_integer(0, last + 1)
        order[last], order[other] = order[other], order[last]
    straight = order in (sorted(order), sorted(order, reverse=True))
    return [*range(1, length), 0] if straight else order


def _permute(probe: Probe, inputs: Inputs, order: list[int]) -> Inputs:
    """Every axis S of every input in the new order: of a mask (B, S, S), both."""
    moved, own = dict(inputs), key_axis(probe.contract)
    for spec in probe.contract.inputs:
        for axis, symbol in enumerate(spec.axes):
            keys = spec.role == "mask" and axis == len(spec.axes) - 1 and own == "S"
            if (symbol == "S" or keys) and moved[spec.name] is not None:
                moved[spec.name] = _permuted(moved[spec.name], axis, order)
    return moved


def _permuted(value: Tensor, axis: int, order: list[int]) -> Tensor:
    return value.movedim(axis, 0)[order].movedim(0, axis).contiguous()
