"""Every parameter takes part: a gradient reaches each one.

Wrong: an output projection that is built and never called; one layer of a list used twice and
another never; `.detach()` or `torch.no_grad()` around what the weights compute.
Right: what is a parameter is used in forward, and what is fixed is a buffer.

A gradient that is zero counts as none for a matrix; a bias may have one by nature, as that of the
keys has, which softmax takes away. Frozen parameters are not looked at. Rests on the word of the
process that ran the candidate.
"""

from attnlab.checks.base import Failure, Mask, Probe, Skip, Tier

TITLE = "Every parameter takes part"
NEEDS = ("output",)
TIER = Tier.SLOPES
ADVICE = "Search forward for the name of this parameter: is it used, and on the way to the output?"
TRUSTED = False
FEW = True
ENOUGH = 3  # positions: with one, a softmax has nothing to choose and no gradient


def run(probe: Probe) -> Failure | None:
    trained = probe.module_facts().trained
    if not trained:
        raise Skip("the module has no parameter that is trained")
    if any(probe.sizes.get(s, ENOUGH) < ENOUGH for s in ("S", "Sq", "Sk")):
        raise Skip("too few positions for every weight to matter")
    left = set(trained)
    kinds: tuple[Mask, ...] = ("random", "none")
    for mask in kinds:  # one may hide what another shows
        for name, gradient in probe.gradient_sample(mask)[1].parameters.items() if left else ():
            if gradient.dim() < 2 or gradient.count_nonzero().item():
                left.discard(name)
    missing = [name for name in trained if name in left]
    if not missing:
        return None
    more = f" (nor {', '.join(missing[1:4])})" if len(missing) > 1 else ""
    return Failure(
        message=f"no gradient reaches the parameter {missing[0]}{more}, so it never learns"
    )
