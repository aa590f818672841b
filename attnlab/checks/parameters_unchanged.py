"""A forward pass leaves the parameters as they were.

Only an optimizer changes weights, after a backward pass, and the caller decides when.

Wrong: `self.weight.data /= norm` in forward; clamping or masking weights in place; a "learned"
table that forward writes into.
Right: compute from the weights, write into what is your own.

Probed in eval and in train mode. Rests on the word of the process that ran the candidate.
"""

from attnlab.checks.base import Failure, Probe, Tier, first_index

TITLE = "Parameters stay unchanged"
NEEDS = ("output",)
TIER = Tier.ASIDE
ADVICE = "Look for in-place operations and .data on weights: they belong to the optimizer."
TRUSTED = False
FEW = True


def run(probe: Probe) -> Failure | None:
    done = probe.fresh_instance([probe.draw("random"), probe.draw("random")], train=(False, True))
    for name, was in done.before.items():
        now = done.after.get(name)
        if now is None or now.shape != was.shape:
            return Failure(message=f"the parameter {name} is not there any more after a call")
        changed = ~((now == was) | (was.isnan() & now.isnan()))
        if changed.any().item():
            return Failure(
                message=f"two calls of forward changed the parameter {name}: "
                f"{int(changed.sum().item())} of {was.numel()} values, the first at "
                f"{first_index(changed)}"
            )
    return None
