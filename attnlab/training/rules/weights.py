"""Parameters: which learn, which do not, and how far each step moves them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import median

from attnlab.records.trace import Finding
from attnlab.training.log import TrainingLog, Weight
from attnlab.training.rules.base import found, line_of

MOST = 3  # names that a message lists
LARGE, SMALL = 0.3, 1e-7  # of a weight, that one step changes
COUPLED = 0.2  # weight decay that is added to gradients
DECOUPLED = {"AdamW", "Lion", "Adafactor", "Muon", "LBFGS"}
SHRINKS = 0.02  # of a weight, that decay takes in one step
SCHEDULES = r"def \w*(lr|rate|factor|lambda|warm|schedule)\w*\("


def _names(weights: Sequence[Weight]) -> str:
    more = len(weights) - MOST
    listed = ", ".join(weight.name for weight in weights[:MOST])
    return f"{listed} and {more} more" if more > 0 else listed


def _made(log: TrainingLog, which: int = 0) -> tuple[str, int]:
    made = log.optimizers[which] if log.optimizers else None
    return (made.file, made.line) if made else ("", 0)


def without_gradient(log: TrainingLog) -> Iterator[Finding]:
    """Trained parameters that never get a gradient."""
    if len(log.steps) < 2 or not any(weight.received for weight in log.weights):
        return
    idle = [w for w in log.weights if w.trainable and w.optimized and not w.received]
    if idle:
        yield found(
            "no-gradient",
            _made(log),
            f"{_names(idle)}: in the optimizer, and no gradient but zero reached "
            f"{'them' if len(idle) > 1 else 'it'} in {len(log.steps)} steps. The output does not "
            "depend on it, or something cuts the graph (detach, argmax, .data, a copy)",
            "note" if all(len(w.shape) < 2 for w in idle) else "warning",
        )


def not_optimized(log: TrainingLog) -> Iterator[Finding]:
    """Parameters that get gradients and that no optimizer holds."""
    trained = [w for w in log.weights if w.optimized]
    left = [w for w in log.weights if w.trainable and not w.optimized]
    if not left or len(log.steps) < 2:
        return
    if not trained:
        message = (
            "the optimizer holds none of the parameters of the model that is trained: it was made "
            "for another one, or before the layers were replaced"
        )
        yield found("not-in-optimizer", _made(log, -1), message)
        return
    parts = {w.name.partition(".")[0] for w in left}
    whole = parts.isdisjoint(w.name.partition(".")[0] for w in trained)
    few = sum(_size(w) for w in trained) < sum(_size(w) for w in left)
    yield found(
        "not-in-optimizer",
        _made(log, -1),
        f"{_names(left)}: trainable, and in no optimizer, so "
        f"{'they stay as they were' if len(left) > 1 else 'it stays as it was'} made. Pass "
        "model.parameters(), or set requires_grad to False",
        "note" if whole and few else "warning",
    )


def _size(weight: Weight) -> int:
    size = 1
    for n in weight.shape:
        size *= n
    return size


def update_sizes(log: TrainingLog) -> Iterator[Finding]:
    """Steps that move weights absurdly far, or not at all."""
    moving = [s for s in log.steps if s.rate > 0]  # a schedule may begin, or end, at 0
    ratios = [s.update for s in moving if s.update is not None and math.isfinite(s.update)]
    rates = [s.rate for s in moving]
    if len(ratios) < (1 if log.broken_step else 3):
        return
    usual = median(ratios)
    if usual > LARGE:
        yield found("learning-rate", _made(log), percent=100 * usual, top=max(rates))
    elif usual < SMALL and (log.schedules or max(ratios) < SMALL):  # else it has arrived
        yield found(
            "learning-rate",
            _made(log),
            f"a step changes a weight matrix by {usual:.1g} of its size (learning rate "
            f"{max(rates):.3g}): usual is about 0.001. The learning rate is too small, or its "
            "warm-up too long",
        )


def rate_zero(log: TrainingLog) -> Iterator[Finding]:
    """A learning rate of 0."""
    rates = [s.rate for s in log.steps]
    if len(rates) >= 3 and max(rates) == 0.0:
        place = (log.steps[0].file, log.steps[0].line)
        if log.schedules:
            place = (log.schedules[0].file, log.schedules[0].line)
            shown = (r"return .*[^:]//", r"^(?!\s*(from|import)\b).*LambdaLR|" + SCHEDULES)
            told = (line_of(log.source, pattern, 0, 0) for pattern in shown)
            place = (place[0], next(filter(None, told), place[1]))
        yield found(
            "rate-zero",
            place,
            f"the learning rate was 0 in all {len(rates)} steps: nothing is learned"
            + (". The factor of the schedule is 0: divided as integers?" if log.schedules else ""),
        )


def decay(log: TrainingLog) -> Iterator[Finding]:
    """Weight decay that takes a visible share of a weight at each step."""
    strong = [s for s in log.steps if s.rate * s.decay > SHRINKS]
    if log.steps and len(strong) >= min(3, len(log.steps)):
        step = strong[0]
        yield found("weight-decay", _made(log), step=step, percent=100 * step.rate * step.decay)
        return
    for made in log.optimizers:
        largest = max((g[0] for g in made.groups), default=0.0)
        if largest >= COUPLED and made.kind not in DECOUPLED:
            yield found(
                "weight-decay",
                (made.file, made.line),
                f"{made.kind} adds {largest:g} times each weight to its gradient: that outweighs "
                "what the loss says, and the weights shrink to 0. Usual is 1e-5 to 1e-3 here; a "
                "decay of averages has another name (alpha, betas, rho)",
            )
            return


def decay_groups(log: TrainingLog) -> Iterator[Finding]:
    """Decay on gains and biases, and none on matrices."""
    for made in log.optimizers:
        decayed = [g for g in made.groups if g[0] > 0]
        spared = [g for g in made.groups if g[0] == 0]
        swapped = decayed and spared and not any(g[1] for g in decayed)
        if swapped and any(g[1] for g in spared) and not any(g[2] for g in spared):
            yield found(
                "weight-decay",
                (made.file, made.line),
                f"weight decay {decayed[0][0]:g} is on {sum(g[2] for g in decayed)} vectors (gains "
                f"and biases) and on none of {sum(g[1] for g in spared)} matrices: the groups are "
                "exchanged",
            )


def frozen_moves(log: TrainingLog) -> Iterator[Finding]:
    """Frozen parameters that steps change."""
    moved = [w for w in log.weights if not w.trainable and w.moved]
    if moved:
        yield found(
            "frozen-moves", _made(log), names=_names(moved), them="them" if len(moved) > 1 else "it"
        )


def flagged_modules(log: TrainingLog) -> Iterator[Finding]:
    """`module.requires_grad = True`, which sets an attribute that nothing reads."""
    if log.flagged:
        line = line_of(log.source, r"^(?!\s*(p|w|v|param\w*)\.)\s*\S+\.requires_grad = ", 0, 0)
        file, made = _made(log)
        yield found("flag-on-module", (file, line or made), module=log.flagged[0])
