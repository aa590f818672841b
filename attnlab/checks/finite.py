"""Ordinary inputs give outputs without NaN or infinity.

Wrong: `scores.exp() / scores.exp().sum(-1, keepdim=True)` overflows where scores are large.
Right: `softmax(scores, dim=-1)`, which subtracts the row's maximum first.

Probed at unit scale and at thirty times that (where what only float32 is too narrow for, as the
kernel of linear attention, is let pass), with masks that leave every query a key to attend
to: `fully-masked-row` looks at rows without any key.
"""

from attnlab.checks.base import Failure, Probe, Tier, check
from attnlab.checks.shared.compare import failure_at
from attnlab.probe.answers import LOUD, Inputs


@check(
    title="Outputs are finite",
    needs=("output",),
    tier=Tier.FINITE,
    advice="Look at a trace of such a call: below it stands which step made the first NaN.",
)
def run(probe: Probe) -> Failure | None:
    return _not_finite(probe, 1.0) or _not_finite(probe, LOUD)


def _not_finite(probe: Probe, scale: float) -> Failure | None:
    inputs, out = probe.sample("random", scale)
    bad = ~out.isfinite()
    if scale > 1 and bad.any().item() and _narrow(probe, inputs):
        return None
    return failure_at(
        bad,
        lambda where: (
            f"{int(bad.sum().item())} of {out.numel()} output values are NaN or "
            f"infinite for inputs of scale {scale:g}, the first at {where}"
        ),
    )


def _narrow(probe: Probe, inputs: Inputs) -> bool:
    """Whether float32 alone is too narrow for these inputs: in float64 all is finite."""
    wide = probe.float64_variant()
    given = {
        name: t.double() if t is not None and t.is_floating_point() else t
        for name, t in inputs.items()
    }
    return wide is not None and bool(wide.call(given).isfinite().all())
