"""Weights that are said to be one are one and the same parameter.

An embedding and the output head that shares its matrix learn together only if they are one object:
two parameters with equal values part at the first step, and two that share memory add their steps
without adding their gradients.

Wrong: `self.head.weight.data = self.embedding.weight.data`; `copy_` of the one into the other;
a tie that is made before one of the two is replaced.
Right: `self.head.weight = self.embedding.weight`, or a head that asks the embedding.

Rests on the word of the process that ran the candidate.
"""

from attnlab.checks.base import Failure, Probe, Tier

TITLE = "Tied weights are one parameter"
NEEDS = ("output", "tied")
TIER = Tier.MEMORY
ADVICE = "Assign the parameter itself: `a.weight = b.weight`, after both modules are built."
TRUSTED = False
ONCE = True


def run(probe: Probe) -> Failure | None:
    facts, names = probe.module_facts(), set(probe.parameters())
    for group in probe.contract.tied:
        if any(set(group) <= set(one) for one in facts.tied):
            continue
        known = names.union(*map(set, facts.tied))
        missing = [name for name in group if name not in known]
        if missing:
            have = ", ".join(sorted(known)) or "none"
            return Failure(message=f"there is no parameter {missing[0]}; there are: {have}")
        if any(set(group) <= set(one) for one in facts.copies):
            return Failure(
                message=f"{' and '.join(group)} share their memory, and are two parameters: each "
                "gets a gradient and a step of its own"
            )
        return Failure(message=f"{' and '.join(group)} are separate parameters, not one")
    return None
