"""Dropout is active in train mode, leaves the mean as it is and drops what the reference drops.

In train mode two calls with the same input differ. Where the contract promises `unbiased-dropout`,
the mean of many calls is the output in eval mode: what is kept is scaled by 1 / (1 - p). Where it
promises `same-dropout`, values are dropped as often as the reference drops them, at the same place,
and each value by itself.

Wrong: a dropout layer that is built and never called; `F.dropout(x, p)` with `training=False`; a
mask of zeros without the scale; dropout on scores of -inf, which gives NaN; two dropouts in a row;
`nn.Dropout(1 - keep)` for `nn.Dropout(keep)`; one mask for all samples of a batch.
Right: one `F.dropout(weights, p, self.training)`, where the task says.

Whether the same values are dropped shows in how the outputs of many calls scatter about that of
eval mode: their squared distances and their products with each other are compared with those of as
many calls of the reference. Shuffling the calls of both shows which differences are mere chance.
"""

import math

from attnlab.checks.base import Failure, Probe, Tier, check
from attnlab.checks.shared.compare import far, first_index
from attnlab.checks.shared.inputs import change_along, first_along
from attnlab.probe.answers import Tensor

TITLE = "Dropout is active in train mode, and drops what the reference drops"
MEAN_CALLS = 24
MEAN_SURE = 7.0  # standard errors: less than one wrong verdict in a million
CALLS = 192  # of each of the two
SHUFFLES = 200
# Standard deviations of the shuffled. Products are skewed as a square is, so they need more room.
SURE, SURER = 8.0, 15.0


@check(
    id="train-dropout",
    title="Dropout is active in train mode",
    needs=("output", "dropout"),
    tier=Tier.REGIMES,
    advice=(
        "Print what goes into the dropout and what comes out, in train mode: zeros, and 1/(1-p)."
    ),
    few=True,
)
def _active_in_training(probe: Probe) -> Failure | None:
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
        return Failure(message="after calls in train mode, the output of eval mode has changed")
    if "unbiased-dropout" not in probe.contract.promises:
        return None
    calls += probe.calls([inputs] * (MEAN_CALLS - 2), train=True)
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
    if abs(mean) <= MEAN_SURE * error:
        return None
    return Failure(
        message=f"over {len(shifts)} calls in train mode the output is {1 + mean:.2f} times that "
        f"of eval mode on average (standard error {error:.2f}), expected 1"
    )


@check(
    id="same-dropout",
    title="Dropout drops what the reference drops",
    needs=("reference", "output", "dropout", "same-dropout"),
    tier=Tier.LEARNING,
    advice="Look for a second dropout, for its probability, and for what it is given: its shape.",
    few=True,
)
def _drops_the_same(probe: Probe) -> Failure | None:
    # The same sequence in every row: a draw that rows share moves them alike.
    inputs = change_along(probe, probe.sample()[0], "B", first_along)
    right, exact = probe.call(inputs), probe.expected(inputs)
    mine = [_away(out, right) for out in probe.calls([inputs] * CALLS, train=True)]
    theirs = [_away(out, exact) for out in probe.expected_in_training(inputs, CALLS)]
    both = mine[0].new_zeros(2 * CALLS, mine[0].numel())
    for row, shift in zip(both, (*mine, *theirs), strict=True):
        row.copy_(shift)
    sides = _sides(probe, both)
    products = both @ both.mT
    squares = products.diagonal()
    if _unlikely(sides @ squares, SURE):
        return Failure(
            message=f"over {CALLS} calls in train mode the output is {_rms(squares[:CALLS])} (root "
            f"mean square) from that of eval mode, the reference's {_rms(squares[CALLS:])}"
        )
    alike = products.square()
    alike.fill_diagonal_(0.0)
    if _unlikely(((sides @ alike) * sides).sum(-1), SURER):
        return Failure(
            message="in train mode the output differs from that of eval mode by as much as the "
            "reference's, but other values change together: dropout is at another place, or one "
            "random mask is shared"
        )
    return None


def _away(out: Tensor, calm: Tensor) -> Tensor:
    return (out.double() - calm.double()).flatten()


def _sides(probe: Probe, both: Tensor) -> Tensor:
    """+1 and -1 for the calls of the two: as they are first, then shuffled."""
    orders = probe.noise(both.new_zeros(SHUFFLES + 1, 2 * CALLS)).argsort(-1).argsort(-1)
    sides = (orders < CALLS).double() * 2 - 1
    sides[0, :CALLS], sides[0, CALLS:] = 1.0, -1.0
    return sides


def _unlikely(found: Tensor, sure: float) -> bool:
    """Whether the first lies apart from the others, which show what chance does."""
    others = found[1:]
    away = (found[0] - others.mean()).abs().item()
    return bool(away > sure * others.std().item() and away > 0)


def _rms(squares: Tensor) -> str:
    return f"{math.sqrt(squares.mean().item()):.3g}"
