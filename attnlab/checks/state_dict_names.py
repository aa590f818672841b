"""A checkpoint holds what the task names, and gives the module back.

Where a task states names, `state_dict()` has these, no more and no less; and another instance that
loads it gives the same output, wherever there is one.

Wrong: a layer called `proj` where `out_proj` was stated; a table of the maximum length saved with
every checkpoint; random features kept as a plain attribute, which a checkpoint does not hold; a
hook that reorders what is loaded.
Right: parameters under the stated names, what can be computed again in a buffer with
`persistent=False`.

The names rest on the word of the process that ran the candidate.
"""

from attnlab.checks.base import Failure, Probe, Skip, Tier, far, first_index

TITLE = "A checkpoint gives the module back"
NEEDS = ("output",)
TIER = Tier.ASIDE
ADVICE = "Print list(module.state_dict()) beside the names that the task states."
TRUSTED = False
ONCE = True


def run(probe: Probe) -> Failure | None:
    saved, stated = (
        probe.module_facts().saved,
        probe.contract.state_dict or probe.module_facts().saved,
    )
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
    if again is None:  # where nothing is said of checkpoints, that is nobody's promise
        told = "another instance cannot load the state_dict of this one"
        return Failure(message=told) if probe.contract.state_dict else None
    gap = far(out, again)
    if gap.any().item():
        return Failure(
            message="another instance that loaded the state_dict gives another output, first at "
            f"{first_index(gap)}: something that matters is not saved"
        )
    return None
