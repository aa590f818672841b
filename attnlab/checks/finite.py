"""Ordinary inputs give outputs without NaN or infinity.

Wrong: `scores.exp() / scores.exp().sum(-1, keepdim=True)` overflows where scores are large.
Right: `softmax(scores, dim=-1)`, which subtracts the row's maximum first.

Probed at unit scale and at thirty times that, with masks that leave every query a key to attend
to: rows without any key are the business of `fully-masked-row`.
"""

from attnlab.checks.base import Failure, Probe, first_index

TITLE = "Outputs are finite"
NEEDS = ("output",)
AFTER = ("output-shape",)
ADVICE = "Run `attnlab run`: the row flagged NaN or Inf first is where to look."


def run(probe: Probe) -> Failure | None:
    for scale in (1.0, 30.0):
        out = probe.call(probe.draw("random", scale))
        bad = ~out.isfinite()
        if bad.any().item():
            return Failure(
                message=f"{int(bad.sum().item())} of {out.numel()} output values are NaN or "
                f"infinite for inputs of scale {scale:g}, the first at {first_index(bad)}"
            )
    return None
