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
            yield found(
                "train-while-evaluating",
                "warning",
                at,
                f"{e.name} called {e.kind} {e.in_train} of {e.calls} times in train mode: dropout "
                "and batch statistics are on while it is evaluated. Call model.eval() before, and "
                "model.train() after",
            )
        if e.drops and e.left_in_eval:
            yield found(
                "eval-while-training",
                "warning",
                at,
                f"{e.name} leaves {e.kind} in eval mode, and it was in train mode before: what is "
                "trained after it has no dropout. Call model.train() at its end",
            )
        if e.changes_weights:
            yield found(
                "evaluation-trains",
                "warning",
                at,
                f"the weights of {e.kind} are others after {e.name}: it takes steps of its own, or "
                "writes into them",
            )
        elif e.graded:
            yield found(
                "evaluation-graded",
                "note",
                at,
                f"{e.graded} of {e.calls} calls in {e.name} record gradients that nobody uses: put "
                "torch.no_grad() around them",
            )
        if e.shuffled_starts > 1:
            yield found(
                "evaluation-order",
                "warning",
                at,
                f"{e.name} goes through one loader {e.shuffled_starts} times, and it shuffles: "
                "what the first pass collects stands in another order than what the second does",
            )
        if e.rows >= FEW and e.trained_rows >= MUCH * e.rows:
            yield found(
                "evaluation-shared",
                "warning",
                at,
                f"{e.trained_rows} of the {e.rows} different samples that {e.name} evaluates are "
                f"among those of the {len(log.steps)} steps before: it measures what was learned "
                "by heart",
            )


def told(log: TrainingLog) -> Iterator[str]:
    """What each function did."""
    for e in log.evaluations:
        if not e.error:
            yield f"{e.name}: {e.calls} calls of {e.kind or 'no module'}, {e.rows} samples"
