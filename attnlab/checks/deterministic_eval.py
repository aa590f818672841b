"""In eval mode the same input gives the same output, also after other calls.

Wrong: `F.dropout(weights, 0.1)`, which is active unless it is told `training=self.training`; or a
cache that a first call fills and a second call with other values reads.
Right: `nn.Dropout` as a submodule, which eval mode switches off, and no state between calls.

Probed by three calls: an input, another one, the first again.
"""

from attnlab.checks.base import Failure, Probe, Steps, Tier, far

TITLE = "Eval mode is deterministic"
NEEDS = ("output",)
FEW = True
TIER = Tier.REPEATABLE
ADVICE = "Look for dropout that ignores training mode, and for state kept between two calls."


def run(probe: Probe) -> Steps:
    inputs, first = probe.sample()
    _, again = yield [probe.draw("random"), inputs]
    gap = far(first, again)
    if gap.any().item():
        share = gap.float().mean().item()
        stateful = not far(again, probe.call(inputs)).any().item()
        chance = "it is random, or changes with each call"
        why = "it keeps something from call to call" if stateful else chance
        return Failure(
            message=f"the same input gave another output the second time: {share:.0%} of the "
            f"values differ, by up to {(first - again).abs().max().item():.2g}: {why}"
        )
    return None
