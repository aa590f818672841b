"""The module does not change its inputs.

Wrong: `x += self.pe[:, :S]` writes into the caller's tensor, which the residual branch, the next
layer or the next batch then reads.
Right: `x = x + self.pe[:, :S]`, and an output that is no view of an input, nor of a tensor that the
next call writes into.

What was changed is what the candidate's own process reports.
"""

from attnlab.checks.base import Failure, Probe, Tier, check
from attnlab.checks.shared.compare import failure_at, first_failure, mask_kinds
from attnlab.probe.answers import Inputs, Tensor


@check(
    title="Inputs stay unchanged",
    needs=("output",),
    tier=Tier.MEMORY,
    advice=(
        "Look for in-place operations on an argument: +=, *=, a name that ends in _, x[...] = ..."
    ),
    trusted=False,
    few=True,
)
def run(probe: Probe) -> Failure | None:
    shared = ""
    for mask in mask_kinds(probe.contract, "random"):
        inputs = probe.draw(mask)
        after = probe.inputs_after_call(inputs)
        shared = shared or after.alias
        failure = _changed(inputs, after.inputs)
        if failure:
            return failure
        if after.learns:
            return Failure(
                message=f"the call made its argument {after.learns} require a gradient",
                advice="Leave requires_grad of what the caller passed as it is; detach a copy.",
            )
        if after.overwritten:
            return Failure(
                message="the next call, with other inputs, changed the previous output: "
                "both share their memory",
                advice="Return a tensor of your own: a result that is computed, or a clone.",
            )
    if not shared:
        return None
    return Failure(
        message=f"the output is a view of the argument {shared}: they share their "
        "memory, so writing into one changes the other",
        advice="Return a tensor of your own: a result that is computed, or a clone.",
    )


def _changed(inputs: Inputs, after: Inputs) -> Failure | None:
    return first_failure(
        _differs(name, before, after[name])
        for name, before in inputs.items()
        if before is not None and name in after
    )


def _differs(name: str, before: Tensor, now: Tensor) -> Failure | None:
    if tuple(now.shape) != tuple(before.shape):
        return Failure(
            message=f"{name} had shape {tuple(before.shape)} and has {tuple(now.shape)} now"
        )
    changed = now != before
    return failure_at(
        changed,
        lambda where: (
            f"forward wrote into its argument {name}: {int(changed.sum().item())} of "
            f"{before.numel()} values differ after it, the first at {where}"
        ),
    )
