"""The order of the loop: gradients, steps, clipping, schedules, modes."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator

from attnlab.records.trace import Finding
from attnlab.training.log import Step, TrainingLog
from attnlab.training.rules.base import found

SEVERAL = 3  # steps that must show the same


def _at(step: Step) -> tuple[str, int]:
    return step.file, step.line


def gradients_left_over(log: TrainingLog) -> Iterator[Finding]:
    """Gradients of the step before that nobody cleared."""
    late = [s for s in log.steps if s.number > 1 and s.leftover]
    if len(late) >= min(SEVERAL, max(len(log.steps) - 1, 1)) and late:
        norms = [s.gradient for s in log.steps if s.gradient is not None]
        grows = len(norms) > 1 and norms[-1] > 1.5 * norms[0]
        grown = f": their norm went from {norms[0]:.3g} to {norms[-1]:.3g}" if grows else ""
        own = math.isnan(late[0].rate)
        clear = "Set .grad of each to None" if own else "Call optimizer.zero_grad()"
        yield found(
            "gradients-left-over",
            _at(late[0]),
            clear=clear,
            grown=grown,
            count=len(late),
            steps=len(log.steps),
        )


def no_backward(log: TrainingLog) -> Iterator[Finding]:
    """Steps without any gradient."""
    if log.steps and not log.backwards and all(s.gradient is None for s in log.steps):
        yield found("no-backward", _at(log.steps[0]), steps=len(log.steps))


def no_step(log: TrainingLog) -> Iterator[Finding]:
    """Backward passes, and no step."""
    if log.backwards and not log.steps and log.optimizers and len(log.backwards) >= SEVERAL:
        first = log.backwards[0]
        yield found("no-step", (first.file, first.line), backwards=len(log.backwards))


def step_before_backward(log: TrainingLog) -> Iterator[Finding]:
    """A first step without gradients, while later ones have some."""
    first = log.steps[0] if log.steps else None
    if first is None or first.gradient is not None or not log.backwards:
        return
    yield found("step-before-backward", _at(first))


def cleared_before_step(log: TrainingLog) -> Iterator[Finding]:
    """Gradients that were cleared between backward and step."""
    if len({step.optimizer for step in log.steps}) > 1:
        return
    bad = [
        s
        for s in log.steps
        if "backward" in s.events
        and s.gradient in (None, 0.0)
        and "zero" in s.events[s.events.index("backward") :]
    ]
    if len(bad) >= min(SEVERAL, len(log.steps)) and bad:
        yield found("cleared-before-step", _at(bad[0]), count=len(bad), steps=len(log.steps))


def cleared_between_parts(log: TrainingLog) -> Iterator[Finding]:
    """Gradients of a micro-batch that the next one clears."""
    if len({step.optimizer for step in log.steps}) != 1 or len(log.steps) < SEVERAL:
        return
    if all(_clears_between(step.events) for step in log.steps):
        first = log.steps[0]
        place = first.cleared if first.cleared[1] else _at(first)
        yield found("cleared-between-parts", place)


def _clears_between(events: tuple[str, ...]) -> bool:
    if {"closure", "moved"} & set(events):  # run as often as is asked for, or at other weights
        return False
    order = [event for event in events if event in ("backward", "zero")]
    if "backward" not in order:
        return False
    first, last = order.index("backward"), len(order) - 1 - order[::-1].index("backward")
    return "zero" in order[first:last]


def clipped_late(log: TrainingLog) -> Iterator[Finding]:
    """Gradients that are clipped once the step has used them, or before there are any."""
    clipped = [s for s in log.steps if "clip" in s.events]
    if len(clipped) < SEVERAL:
        return
    orders = Counter(_clip_order(s.events) for s in clipped[1:])
    order = orders.most_common(1)[0][0]
    if order == "early":
        yield found("clip-late", (clipped[0].file, clipped[0].clip_line))


def _clip_order(events: tuple[str, ...]) -> str:
    """Of the events since the step before: whether the clip stands before the first backward."""
    return "early" if events.index("clip") < _first(events, "backward") else "right"


def _first(events: tuple[str, ...], event: str) -> int:
    return events.index(event) if event in events else len(events)


def schedule_order(log: TrainingLog) -> Iterator[Finding]:
    """A schedule that moves before the first step."""
    first = log.schedule_first
    if first is not None and first[2] == 0 and log.steps:
        yield found("schedule-before-step", first[:2])


def schedule_too_often(log: TrainingLog) -> Iterator[Finding]:
    """Several moves of one schedule for each step."""
    first, schedulers = log.schedule_first, max(log.schedulers, 1)
    many = log.schedule_steps / schedulers
    if first is not None and len(log.steps) >= SEVERAL and many >= 1.9 * len(log.steps):
        yield found("schedule-too-often", first[:2], many=many, steps=len(log.steps))


def optimizer_made_again(log: TrainingLog) -> Iterator[Finding]:
    """An optimizer that is made anew for the same parameters while training goes on."""
    again = [made for made in log.optimizers if made.known and made.step > 0]
    lines = Counter((made.file, made.line) for made in again)
    for place, count in lines.items():
        if count >= SEVERAL:
            kind = again[0].kind
            yield found(
                "optimizer-made-again", place, kind=kind, times=count + 1, steps=len(log.steps)
            )


def accumulation_not_divided(log: TrainingLog) -> Iterator[Finding]:
    """Several backward passes of mean losses for one step, none divided."""
    by_step: dict[int, list[float]] = defaultdict(list)
    lines = {(call.file, call.line) for call in log.backwards}
    for call in log.backwards:
        if call.value is not None:
            by_step[call.step].append(call.value)
    counts = Counter(len(values) for values in by_step.values())
    many = counts.most_common(1)[0][0] if counts else 0
    means = {
        round(call.value, 5)
        for call in log.losses
        if call.reduction == "mean" and call.value is not None
    }
    early = [v for step, values in by_step.items() if step < SEVERAL for v in values]
    whole = sum(round(value, 5) in means for value in early)
    if many < 2 or len(lines) != 1 or not early or whole < 0.9 * len(early):
        return
    optimizers = {step.optimizer for step in log.steps}
    if len(optimizers) == 1 and len(log.steps) >= SEVERAL:
        yield found("accumulation-not-divided", next(iter(lines)), many=many)


def graphs_kept(log: TrainingLog) -> Iterator[Finding]:
    """Losses of earlier steps that hold their graphs."""
    if len(log.steps) >= 6 and log.kept_graphs >= len(log.steps) - 3:
        yield found("graph-kept", log.kept_at, log=log)


def mode_while_training(log: TrainingLog) -> Iterator[Finding]:
    """Learning in eval mode, after a start in train mode."""
    for model in log.models:
        if model.drops and model.learned_in_eval >= SEVERAL:
            changed = model.learned_in_train > 0
            how = (
                f"{model.learned_in_train} in train mode before that: nothing switches back after "
                "an evaluation"
                if changed
                else "never in train mode"
            )
            yield found(
                "eval-while-training",
                (model.file, model.line),
                f"{model.kind} learned {model.learned_in_eval} times in eval mode, {how}. Its "
                "dropout and batch statistics are off there; call model.train() in the loop",
                "warning" if changed else "note",
            )


def mode_while_evaluating(log: TrainingLog) -> Iterator[Finding]:
    """Evaluation with dropout on."""
    for model in log.models:
        if model.drops and model.evaluated_in_train and model.learning_calls:
            yield found(
                "train-while-evaluating",
                (model.evaluation_file, model.evaluation_line),
                f"{model.kind} was called {model.evaluated_in_train} times without gradients in "
                "train mode: dropout and batch statistics are on while it is evaluated. Call "
                "model.eval() before, and model.train() after",
            )


def same_batch(log: TrainingLog) -> Iterator[Finding]:
    """One batch for all steps."""
    if len(log.steps) >= 5 and log.batches == 1:
        first = log.steps[0]
        yield found("same-batch", _at(first), severity="note", steps=len(log.steps))
