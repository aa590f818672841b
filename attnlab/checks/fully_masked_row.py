"""A query that may attend to nothing gets a context of zeros, without NaN, also backward.

Softmax over a row of -inf is 0/0, which padding leads to.

Wrong: `nan_to_num(scores, nan=0.0)` before the softmax gives every masked key the same weight;
cleaning NaN after a softmax over an additive -inf mask leaves NaN in the gradients.
Right: fill scores with `masked_fill`, and set the weights of empty rows to 0 with another one.

Zeros in the context make the output the same for every empty row, less the residual where there is
one; that is what is measured, together with finite outputs and gradients.
"""

from attnlab.catalogue.contract_facts import data_inputs, mask_input, query_axis
from attnlab.checks.base import Failure, Probe, Tier, check
from attnlab.checks.shared.compare import failure_at, far
from attnlab.checks.shared.inputs import allowed
from attnlab.probe.answers import Inputs, Tensor


@check(
    title="Fully masked rows give zeros, not NaN",
    needs=("mask", "empty-rows"),
    tier=Tier.SAMPLES,
    advice="Follow an empty row by hand: its keys, its softmax, what autograd multiplies that by.",
)
def run(probe: Probe) -> Failure | None:
    spec = mask_input(probe.contract)
    inputs, out = probe.sample("empty-rows")
    empty, bad = (inputs[spec.name] == spec.forbids).all(-1), ~out.isfinite()
    failure = failure_at(
        bad,
        lambda where: (
            f"{int(empty.sum().item())} queries may attend to nothing, and the output "
            f"has {int(bad.sum().item())} NaN or infinite values, the first at {where}"
        ),
    )
    return failure or _wrong_gradients(probe, inputs) or _not_zeros(probe, inputs, out)


def _wrong_gradients(probe: Probe, inputs: Inputs) -> Failure | None:
    found = probe.gradients(inputs)
    for name, gradient in (*found.inputs.items(), *found.parameters.items()):
        bad = ~gradient.isfinite()
        if bad.any().item():
            return Failure(
                message=f"the output is finite, but the gradient of {name} has "
                f"{int(bad.sum().item())} NaN or infinite values where rows are fully masked"
            )
    return None


def _not_zeros(probe: Probe, inputs: Inputs, out: Tensor) -> Failure | None:
    contract = probe.contract
    data = data_inputs(contract, query_axis(contract))
    if not data or contract.output[:2] != ("B", query_axis(contract)) or "B" not in data[0].axes:
        return None
    alone = ~allowed(probe, inputs).any(-1)
    if not alone.any().item() or inputs[data[0].name].shape != out.shape:
        return None
    plain, branch = out[alone], (out - inputs[data[0].name])[alone]
    if not far(plain, plain[:1].expand_as(plain)).any().item():  # no residual
        return None
    return failure_at(
        far(branch, branch[:1].expand_as(branch)),
        lambda _: (
            f"the mask hides every key from {len(branch)} queries, themselves included, so that "
            "their context is zeros and their outputs are all the same, or the same plus the "
            f"input; they differ by up to {(plain - plain[:1]).abs().max().item():.2g}"
        ),
    )
