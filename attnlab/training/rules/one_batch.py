"""One batch that was learned again and again: whether model, loss and settings can learn it."""

from __future__ import annotations

import math
from collections.abc import Iterator

from attnlab.records.trace import Finding
from attnlab.records.training import OneBatch
from attnlab.training.log import TrainingLog
from attnlab.training.rules.base import found

FITS, STAYS = (
    0.25,
    0.6,
)  # of the first loss: what is left where it was learned, and where it was not


def _fits(run: OneBatch) -> bool:
    return run.learned or run.losses[-1] <= FITS * run.losses[0]


def _stays(run: OneBatch) -> bool:
    """Whether the loss hardly fell; that which falls below 0 has no floor that is known."""
    last = run.losses[-1]
    return not math.isfinite(last) or last > max(STAYS * run.losses[0], 0.0)


def _curve(run: OneBatch) -> str:
    first, last = run.losses[0], run.losses[-1]
    return f"{first:.3g} to {last:.3g} in {run.steps} steps with {run.how}"


def one_batch(log: TrainingLog) -> Iterator[Finding]:
    """A batch that cannot be learned, or not with these settings."""
    if not log.one_batch:
        return
    own, last = log.one_batch[0], log.one_batch[-1]
    if own is not last and _stays(own) and last.learned:
        made = log.optimizers[-1] if log.optimizers else None
        yield found(
            "settings-do-not-learn", (made.file, made.line) if made else ("", 0), curve=_curve(last)
        )
    elif _stays(last) and not last.falling:
        at = log.backwards[0] if log.backwards else None
        yield found(
            "one-batch-not-learned", (at.file, at.line) if at else ("", 0), curve=_curve(last)
        )


def conclusion(log: TrainingLog) -> str:
    """What learning one batch says; "" where it was not tried."""
    if not log.one_batch:
        return ""
    own, last = log.one_batch[0], log.one_batch[-1]
    if last.losses[-1] < 0:
        return "the loss fell below 0, so it has no floor that is known"
    if own.learned and not own.usual:
        return "model and loss can learn it: a fault lies in data, regularization or schedule"
    if last.learned:
        return "model and loss can learn it"
    if last.falling:
        return "the loss still fell when the time was over: --seconds gives it more"
    return "the loss stays well above 0; of some losses that is the floor"
