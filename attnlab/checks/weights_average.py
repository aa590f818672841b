"""Attention averages values: the weights of a query are not negative and sum to 1.

Where all positions of the input are equal, the mean is that value, however many keys a query may
see: so the outputs are equal too, whatever the mask. Rows that all have the same wrong sum show
only in the weights themselves, which are read off the operations of a forward pass.

Wrong: hiding keys by a product with the mask after a softmax over all of them; a sigmoid in place
of a softmax; a softmax over the queries or the heads; weights that are scaled once more after the
softmax; zeros that forward pads the keys with and does not mask; an output times a mask.
Right: mask before the softmax, softmax over the keys; `weights.sum(-1)` is 1 in every row that sees
a key.

Where no product of weights with values can be found (a fused kernel, a normalisation at the end),
nothing is said of the weights themselves.
"""

from attnlab.catalogue.contract_facts import data_inputs
from attnlab.checks.base import Failure, Probe, Steps, Tier, check
from attnlab.checks.shared.compare import failure_at, far, first_failure, first_index, size_from_two
from attnlab.checks.shared.inputs import first_along
from attnlab.probe.answers import Inputs, Mask, Skip, Tensor

TITLE = "Attention weights are not negative and sum to 1"


@check(
    id="constant-value",
    title="The average of equal values is that value",
    needs=("averaging", "sequence"),
    tier=Tier.WEIGHTS,
    advice="Does the row sum to 1, over keys of the input alone, and is the average kept as it is?",
    few=True,
)
def _equal_positions(probe: Probe) -> Steps:
    size_from_two(probe, "S", "with one position every row is trivially 1")
    at = probe.contract.output.index("S")
    masks: tuple[Mask, ...] = ("random", "causal", "none")
    kinds = probe.choose_ways(masks)
    outputs = yield [_constant(probe, mask) for mask in kinds]
    found = zip(kinds, outputs, strict=True)
    return first_failure(
        _unequal(far(out, first_along(out, at)), probe.with_mask(mask)) for mask, out in found
    )


def _unequal(gap: Tensor, how: str) -> Failure | None:
    return failure_at(
        gap,
        lambda at: (
            f"all positions of the input were equal, but the output at {at} is not what "
            f"position 0 gives{how}"
        ),
    )


def _constant(probe: Probe, mask: Mask) -> Inputs:
    """The same at every position."""
    inputs = probe.draw(mask)
    for along in ("S", "Sk"):  # keys may come from a context
        for spec in data_inputs(probe.contract, along):
            inputs[spec.name] = first_along(inputs[spec.name], spec.axes.index(along))
    return inputs


@check(
    id="row-sums",
    title="The weights of a query sum to 1",
    needs=("averaging", "output"),
    tier=Tier.SYMMETRY,
    advice="Print weights.sum(-1) right before the product with the values: which step changed it?",
    trusted=False,
    few=True,
)
def _row_sums(probe: Probe) -> Failure | None:
    masks: tuple[Mask, ...] = ("random", "none")
    for mask in probe.choose_ways(masks):
        seen, how = probe.attention_internals(probe.draw(mask)), probe.with_mask(mask)
        if not seen.sums:
            raise Skip("no product of a softmax's weights with values is to be seen")
        if not seen.lowest >= 0:
            return Failure(message=f"values are mixed by a negative weight, {seen.lowest:.3g}{how}")
        for sums in seen.sums:
            bad = ~((sums - 1).abs() <= probe.tolerance(sums))
            if bad.any().item():
                worst = sums.flatten()[(sums - 1).abs().flatten().argmax()].item()
                return Failure(
                    message=f"the weights of row {first_index(bad)} do not sum to 1; the row that "
                    f"is furthest off sums to {worst:.4g}{how}"
                )
    return None
