"""Train mode gives the output of eval mode, unless dropout is promised.

Wrong: a mask that is applied only `if not self.training`; a dropout that nobody asked for; a branch
that cleans up empty rows in eval mode alone; a maximum that is subtracted in eval mode alone.
Right: only dropout depends on the mode, and this module has none.

The same inputs are given in both modes, with a mask and without, and large ones, too.
"""

from attnlab.checks.base import Failure, Probe, Tier, check
from attnlab.checks.shared.compare import failure_at, far, first_failure, mask_kinds
from attnlab.probe.answers import LOUD, Skip, Tensor

CALLS = 4  # in train mode: what is drawn there may once be what eval mode takes


@check(
    title="Train and eval mode give the same output",
    needs=("reference", "output"),
    tier=Tier.REGIMES,
    advice=(
        "Look for `self.training` and for dropout: what do they do that the task does not ask for?"
    ),
    few=True,
)
def run(probe: Probe) -> Failure | None:
    if "dropout" in probe.contract.promises:
        raise Skip("the module promises dropout")
    kinds = mask_kinds(probe.contract, "random", "none")
    kinds = (kinds * CALLS)[: max(CALLS, len(kinds) + 1)]
    scales = [*(1.0 for _ in kinds[1:]), LOUD]
    samples = [probe.sample(*each) for each in zip(kinds, scales, strict=True)]
    asked = [inputs for inputs, _ in samples]
    *trained, again = probe.calls([*asked, asked[0]], train=[*(True for _ in asked), False])
    failure = first_failure(
        _differs(calm, busy, probe.mask_name(mask))
        for mask, (_, calm), busy in zip(kinds, samples, trained, strict=True)
    )
    return failure or failure_at(
        far(samples[0][1], again),
        lambda where: f"calls in train mode changed the output of eval mode at {where}",
    )


def _differs(calm: Tensor, busy: Tensor, inputs: str) -> Failure | None:
    return failure_at(
        far(calm, busy),
        lambda at: (
            f"in train mode the output at {at} differs from that of eval mode by up to "
            f"{(calm - busy).abs().max().item():.2g} ({inputs})"
        ),
    )
