"""With the same weights and inputs, the gradients equal the reference's.

A module can compute the right values and still not learn: a step that leaves the graph sends
nothing back, or sends back something else.

Wrong: `weights.detach() @ v`, a softmax in NumPy, `with torch.no_grad()` around the scores, writing
through `.data`: forward is right, and queries and keys never learn.
Right: every step is an operation that autograd can follow.

What is compared is the gradient of the output times a random cotangent, for every floating-point
input and every parameter; the reference's is computed in float64. A gradient that is missing where
the reference has one counts as zero. Under a mask, one query is left a single key. Once inputs
require no gradient, as those of a first layer: a checkpoint in its reentrant form then gives none.
"""

from attnlab.checks.base import Failure, Probe, Skip, Tier, masks
from attnlab.checks.shared.inputs import rather, slopes_differ

TITLE = "Gradients equal the reference's"
NEEDS = ("reference", "output")
FEW = True
TIER = Tier.LEARNING
ADVICE = (
    "Look for detach, no_grad, .data, .item or NumPy on the way from this tensor to the output."
)


def run(probe: Probe) -> Failure | None:
    kinds = masks(probe.contract, "random", "causal")
    for mask in dict.fromkeys((*kinds, "none")):
        inputs, found = probe.gradient_sample(mask)
        right = probe.expected_gradients(inputs, found.cotangent)
        if not right.parameters and not right.inputs:
            raise Skip("there is nothing to differentiate by")
        still = " where inputs require none" if found.still else ""
        how = f"{still}{' in train mode' if found.train else ''}"
        failure = slopes_differ(probe, found.parameters, right.parameters, how)
        if not found.still:
            failure = failure or slopes_differ(probe, found.inputs, right.inputs, how)
        if failure:
            return rather(probe, failure, inputs, found.train)
    return None
