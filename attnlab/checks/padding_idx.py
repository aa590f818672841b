"""The row of the padding token is zeros and stays zeros.

Wrong: zeros that a later `nn.init.normal_(self.embedding.weight)` draws over; `padding_idx` kept in
the constructor and not given to the lookup, so that padding learns.
Right: `nn.Embedding(V, D, padding_idx=pad)`, and the row set to zero again after every initialiser.

Looked at are a freshly built module and the gradient of each matrix that has a row per token.
"""

from collections.abc import Mapping

from attnlab.checks.base import Failure, Probe, Tier, check
from attnlab.probe.answers import CannotTell, Inputs, Tensor


@check(
    title="The padding token is zeros and never learns",
    needs=("output", "padding"),
    tier=Tier.ASIDE,
    advice="Print the padding row of a fresh module, and its gradient after one backward pass.",
    once=True,
)
def run(probe: Probe) -> Failure | None:
    pad, tokens = probe.contract.padding_idx, probe.sizes.get("V", 16)
    assert pad is not None
    inputs = _with_padding(probe, pad)
    found = probe.gradients(inputs)
    tables = {n: g for n, g in found.parameters.items() if g.dim() == 2 and g.shape[0] == tokens}
    if not tables:
        return Failure(message="no gradient reaches a matrix with a row for each token")
    right = _expected(probe, inputs, found.cotangent)
    for name, gradient in tables.items():
        by_right = name in right and right[name][pad].count_nonzero().item()
        if gradient[pad].count_nonzero().item() and not by_right:
            return Failure(message=f"row {pad} of {name} is the padding token's, and it learns")
    fresh = probe.initial_parameters()
    for name in tables:
        row = fresh[name][pad]
        if row.count_nonzero().item():
            return Failure(
                message=f"row {pad} of a fresh {name} is the padding token's, and "
                f"{int(row.count_nonzero().item())} of its {row.numel()} values are not 0"
            )
    return None


def _expected(probe: Probe, inputs: Inputs, cotangent: Tensor) -> Mapping[str, Tensor]:
    """The reference's gradients: a head that shares the matrix may train the row."""
    try:
        return probe.expected_gradients(inputs, cotangent).parameters
    except CannotTell:
        return {}


def _with_padding(probe: Probe, pad: int) -> Inputs:
    """Tokens of which some are padding in every sample."""
    inputs = probe.draw("random")
    for spec in probe.contract.inputs:
        if spec.role == "data" and spec.dtype == "int":
            ids = inputs[spec.name].clone()
            ids[..., :1] = pad
            inputs[spec.name] = ids
    return inputs
