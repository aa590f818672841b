"""A checkpoint holds what the task names and restores the module; tied weights are one parameter.

Where a task states names, `state_dict()` has these, no more and no less. Another instance that
loads it gives the same output. Weights that are stated to be tied are one `nn.Parameter`: two
parameters with equal values differ after the first optimizer step, and two that share memory each
get a gradient of their own.

Wrong: a layer called `proj` where `out_proj` was stated; random features kept as a plain attribute,
which a checkpoint does not hold; a hook that reorders what is loaded;
`self.head.weight.data = self.embedding.weight.data`, or a copy, in place of a tie.
Right: parameters under the stated names; what can be computed again in a buffer with
`persistent=False`; `self.head.weight = self.embedding.weight`.

Names rest on the word of the process that ran the candidate.
"""

from attnlab.checks.base import Failure, Probe, Tier, check
from attnlab.checks.shared.compare import failure_at, far
from attnlab.probe.answers import Skip

TITLE = "A checkpoint restores the module"


@check(
    id="tied-storage",
    title="Tied weights are one parameter",
    needs=("output", "tied"),
    tier=Tier.MEMORY,
    advice="Assign the parameter itself, after both modules are built: a.weight = b.weight.",
    trusted=False,
    once=True,
)
def _tied(probe: Probe) -> Failure | None:
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
                message=f"{' and '.join(group)} share their memory, but are two parameters: each "
                "has a gradient and an optimizer step of its own"
            )
        return Failure(message=f"{' and '.join(group)} are separate parameters, not one")
    return None


@check(
    id="state-dict-names",
    title="A checkpoint restores the module",
    needs=("output",),
    tier=Tier.ASIDE,
    advice="Print list(module.state_dict()) beside the names that the task states.",
    trusted=False,
    once=True,
)
def _restores(probe: Probe) -> Failure | None:
    saved = probe.module_facts().saved
    stated = probe.contract.state_dict or saved
    if not saved and not stated:
        raise Skip("it saves nothing")
    missing = [name for name in stated if name not in saved]
    extra = [name for name in saved if name not in stated]
    if missing:
        have = f"; it has {', '.join(extra)} instead" if extra else ""
        return Failure(message=f"state_dict() does not hold {', '.join(missing)}{have}")
    if extra:
        return Failure(message=f"state_dict() also holds {', '.join(extra)}, which is not stated")
    inputs, out = probe.sample()
    again = probe.call_reloaded(inputs)
    if again is not None:
        return failure_at(
            far(out, again),
            lambda at: (
                "another instance that loaded the state_dict gives another output, first at "
                f"{at}: something is not saved"
            ),
        )
    # Where nothing is said of checkpoints, that one can be loaded is nobody's promise.
    refused = Failure(message="another instance cannot load the state_dict of this one")
    return refused if probe.contract.state_dict else None
