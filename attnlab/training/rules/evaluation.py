"""What a function that evaluates does beside evaluating."""

from __future__ import annotations

from collections.abc import Iterator

from attnlab.records.trace import Finding
from attnlab.training.log import TrainingLog
from attnlab.training.rules.base import found

FEW, MUCH = 8, 0.5  # rows that are compared, and the share that no evaluation should have seen


def evaluations(log: TrainingLog) -> Iterator[Finding]:
    """Modes, gradients, weights, order and data of each function that was called."""
    for e in log.evaluations:
        at = (e.file, e.line)
        if e.drops and e.in_train:
            yield found("train-while-evaluating", at, e=e)
        if e.drops and e.left_in_eval:
            yield found("eval-while-training", at, e=e)
        if e.changes_weights:
            yield found("evaluation-trains", at, e=e)
        elif e.graded:
            yield found("evaluation-graded", at, severity="note", e=e)
        if e.shuffled_starts > 1:
            yield found("evaluation-order", at, e=e)
        if e.rows >= FEW and e.trained_rows >= MUCH * e.rows:
            yield found("evaluation-shared", at, e=e, steps=len(log.steps))


def told(log: TrainingLog) -> Iterator[str]:
    """What each function did."""
    for e in log.evaluations:
        if not e.error:
            yield f"{e.name}: {e.calls} calls of {e.kind or 'no module'}, {e.rows} samples"
