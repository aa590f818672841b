"""Gradients of every input and parameter are finite.

Wrong: a NaN that is cleaned out of the output with `nan_to_num` is still in the backward pass; the
square root of an exact zero has an infinite slope.
Right: no step, forward or backward, divides by zero.

Probed with the gradient of the output times a random cotangent.
"""

from attnlab.checks.base import Failure, Probe, Skip, Tier

TITLE = "Gradients are finite"
NEEDS = ("output",)
FEW = True
TIER = Tier.REGIMES
ADVICE = (
    "Use torch.autograd.set_detect_anomaly(True) on this call to see which backward step it is."
)


def run(probe: Probe) -> Failure | None:
    _, found = probe.gradient_sample()
    if not found.inputs and not found.parameters:
        raise Skip("there is nothing to differentiate by")
    for name, gradient in [*found.inputs.items(), *found.parameters.items()]:
        bad = ~gradient.isfinite()
        if bad.any().item():
            return Failure(
                message=f"{int(bad.sum().item())} of {gradient.numel()} values of the gradient of "
                f"{name} are NaN or infinite"
            )
    return None
