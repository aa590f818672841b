"""Dropout is active in train mode and leaves the mean as it is.

In train mode two calls with the same input differ. Where the task promises that only sums and
products stand after the dropout, the mean of many calls is the output in eval mode: what is kept is
scaled up by 1 / (1 - p).

Wrong: a dropout that is built and never called; `F.dropout(x, p)` with `training=False`; a mask of
zeros without the scale; a scale of (1 - p) in train mode instead of its inverse; dropout on scores
that are -inf where they are masked, which is NaN.
Right: `nn.Dropout(p)` as a submodule, called in forward.
"""

import math

from attnlab.checks.base import Failure, Probe, Tensor, Tier, far, first_index

TITLE = "Dropout is active in train mode"
NEEDS = ("output", "dropout")
TIER = Tier.REGIMES
ADVICE = "Print what goes into the dropout and what comes out, in train mode: zeros, and 1/(1-p)."
FEW = True
CALLS = 24
SURE = 7.0  # standard errors: less than one wrong verdict in a million


def run(probe: Probe) -> Failure | None:
    inputs, right = probe.sample()
    calls = probe.calls([inputs] * 2, train=True)
    if not far(calls[0], calls[1]).any().item():
        return Failure(message="two calls in train mode gave the same output: nothing was dropped")
    bad = ~calls[0].isfinite() | ~calls[1].isfinite()
    if bad.any().item():
        return Failure(
            message=f"in train mode the output is NaN or infinite, first at {first_index(bad)}, "
            "where eval mode's is finite",
            advice="Do not drop what was masked: 0 times the -inf of a hidden score is NaN.",
        )
    if far(right, probe.call(inputs)).any().item():
        return Failure(message="after calls in train mode, eval mode gives another output")
    if "unbiased-dropout" not in probe.contract.promises:
        return None
    calls += probe.calls([inputs] * (CALLS - 2), train=True)
    data = inputs[next(i.name for i in probe.contract.inputs if i.role == "data")]
    away = right - data if data.shape == right.shape and data.is_floating_point() else right
    return _biased(calls, right, right) or _biased(calls, right, away)


def _biased(calls: list[Tensor], right: Tensor, along: Tensor) -> Failure | None:
    """How far the calls are from eval mode, along one direction, in standard errors."""
    length = (along * along).sum().item()
    if not length > 0:
        return None
    shifts = [((out - right) * along).sum().item() / length for out in calls]
    mean = sum(shifts) / len(shifts)
    spread = math.sqrt(sum((s - mean) ** 2 for s in shifts) / (len(shifts) - 1))
    error = spread / math.sqrt(len(shifts))
    if abs(mean) <= SURE * error:
        return None
    return Failure(
        message=f"over {len(shifts)} calls in train mode the output is {1 + mean:.2f} times that "
        f"of eval mode on average, give or take {error:.2f}; it should be 1"
    )
