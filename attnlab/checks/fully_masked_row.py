"""A query that may attend to nothing gets a context of zeros, without NaN, also backward.

Softmax over a row of -inf is 0/0. Padding makes such rows every day.

Wrong: `nan_to_num(scores, nan=0.0)` before the softmax gives every masked key the same weight;
cleaning NaN after a softmax over an additive -inf mask leaves NaN in the gradients.
Right: fill scores with `masked_fill`, and set the weights of empty rows to 0 with another one.

Zeros in the context make output minus residual the same for every empty row, whatever the input;
that is what is measured, together with finite outputs and gradients.
"""

from attnlab.checks.base import Failure, Inputs, Probe, Tensor, far, first_index, mask_input

TITLE = "Fully masked rows give zeros, not NaN"
NEEDS = ("mask", "empty-rows")
AFTER = ("output-shape", "finite", "deterministic-eval")
ADVICE = "Follow one empty row by hand: what is its softmax, and what does autograd multiply it by?"


def run(probe: Probe) -> Failure | None:
    spec = mask_input(probe.contract)
    inputs = probe.draw("empty-rows")
    empty = (inputs[spec.name] == spec.forbids).all(-1)
    out = probe.call(inputs)
    bad = ~out.isfinite()
    if bad.any().item():
        return Failure(
            message=f"{int(empty.sum().item())} queries may attend to nothing, and the output has "
            f"{int(bad.sum().item())} NaN or infinite values, the first at {first_index(bad)}"
        )
    for name, gradient in _gradients(probe, inputs):
        bad = ~gradient.isfinite()
        if bad.any().item():
            return Failure(
                message=f"the output is finite, but the gradient of {name} has "
                f"{int(bad.sum().item())} NaN or infinite values where rows are fully masked"
            )
    return _not_zeros(probe, inputs, out, empty)


def _gradients(probe: Probe, inputs: Inputs) -> list[tuple[str, Tensor]]:
    found = probe.gradients(inputs)
    return [*found.inputs.items(), *found.parameters.items()]


def _not_zeros(probe: Probe, inputs: Inputs, out: Tensor, empty: Tensor) -> Failure | None:
    data = next(i for i in probe.contract.inputs if i.role == "data")
    if empty.shape != out.shape[:-1] or inputs[data.name].shape != out.shape:
        return None
    branch = (out - inputs[data.name])[empty]
    gap = far(branch, branch[:1].expand_as(branch))
    if gap.any().item():
        return Failure(
            message="queries that may attend to nothing get a context that depends on the input: "
            f"their outputs minus the residual differ by up to "
            f"{(branch - branch[:1]).abs().max().item():.2g}, expected the same for all"
        )
    return None
