"""What goes into the loss, and what comes out of it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator

from attnlab.records.trace import Finding
from attnlab.training.log import LossCall, TrainingLog
from attnlab.training.rules.base import found

REBUILT = re.compile(r"vae\b|auto_?enc|recon|bottleneck|denois", re.IGNORECASE)


def _at(call: LossCall) -> tuple[str, int]:
    return call.file, call.line


def _steady(log: TrainingLog, shows: Callable[[LossCall], bool]) -> Iterator[LossCall]:
    """Of each line: a call, where all calls of the line show it."""
    lines: dict[tuple[str, int], list[LossCall]] = {}
    for call in log.losses:
        lines.setdefault(_at(call), []).append(call)
    for calls in lines.values():
        if all(map(shows, calls)):
            yield calls[0]


def shifts(log: TrainingLog) -> Iterator[Finding]:
    """Targets that are the inputs, or two positions ahead of them."""
    for call in _steady(log, lambda c: c.shift is not None and c.shift != 1):
        share = f"{100 * call.agreement:.0f} %"
        if call.shift == 0:
            yield found(
                "labels-not-shifted",
                "note" if REBUILT.search(log.source) else "warning",
                _at(call),
                f"{share} of the targets are the very ids that the model sees at the same "
                "position: it learns to copy, and the loss falls to 0. The target of a position "
                "is the next id",
            )
        else:
            ahead = "two positions ahead of" if call.shift == 2 else "one position behind"
            yield found(
                "labels-shifted-twice",
                "warning",
                _at(call),
                f"{share} of the targets stand {ahead} the ids at the same position: they are "
                "shifted in two places, or the wrong way. The target of a position is the next id",
            )


def padding_counted(log: TrainingLog) -> Iterator[Finding]:
    """Padding among the targets of a mean."""
    for call in _steady(log, lambda c: c.padding is not None and c.padded > 0.02):
        if call.reduction == "none":
            continue
        yield found(
            "padding-counted",
            "warning",
            _at(call),
            f"{100 * call.padded:.0f} % of the targets are the padding id {call.padding}, and all "
            f"count: pass ignore_index={call.padding}, or label padding -100",
        )


def probabilities(log: TrainingLog) -> Iterator[Finding]:
    """Probabilities where logits are expected, and logits where logarithms are."""
    for call in _steady(log, lambda c: c.name == "cross_entropy" and c.probabilities):
        yield found(
            "probabilities-into-loss",
            "warning",
            _at(call),
            f"the scores {call.shape} that cross_entropy takes sum to 1 and none is negative: they "
            "are probabilities already, and it applies log_softmax to them. Give it the logits",
        )
    for call in _steady(log, lambda c: c.name.endswith("with_logits") and c.probabilities):
        yield found(
            "probabilities-into-loss",
            "warning",
            _at(call),
            f"all scores {call.shape} that {call.name} takes lie between 0 and 1: they seem to be "
            "probabilities already, and it applies a sigmoid to them. Give it the logits",
        )
    for call in _steady(log, lambda c: c.name == "nll_loss" and not c.log_probabilities):
        if call.classes > 1:
            yield found(
                "logits-into-nll",
                "warning",
                _at(call),
                f"none of the scores {call.shape} that nll_loss takes is above 0, but the "
                f"exponentials of the {call.classes} classes on axis 1 do not sum to 1: "
                "log_softmax runs over another axis. Let it run over the classes, or give the "
                "logits to cross_entropy"
                if call.none_positive
                else f"the scores {call.shape} that nll_loss takes are not log-probabilities: "
                "apply log_softmax first, or use cross_entropy",
            )
    for call in _steady(log, lambda c: c.name == "cross_entropy" and c.log_probabilities):
        yield found(
            "log-probabilities-into-loss",
            "note",
            _at(call),
            "cross_entropy takes logarithms of probabilities and applies log_softmax once more: "
            "the value is the same; nll_loss is what they are for",
        )


def mixed_rows(log: TrainingLog) -> Iterator[Finding]:
    """Rows of scores that are no rows of the model's output."""
    for call in _steady(log, lambda c: c.mixed):
        yield found(
            "scores-mixed",
            "warning",
            _at(call),
            f"the scores {call.shape} hold the numbers of the model's output in rows that are no "
            "rows of it: reshape cut across classes and positions. Use logits.reshape(-1, classes) "
            "of (B, S, classes), or logits.transpose(1, 2)",
        )


def crossed_rows(log: TrainingLog) -> Iterator[Finding]:
    """Targets that are flattened in another order than the scores."""
    for call in _steady(log, lambda c: c.crossed):
        yield found(
            "targets-crossed",
            "warning",
            _at(call),
            f"the {call.shape[0]} targets are the model's own ids, but in the order of the other "
            "axis: scores were flattened batch by batch and targets position by position, or the "
            "other way round. Flatten both in the same layout",
        )


def broadcast_targets(log: TrainingLog) -> Iterator[Finding]:
    """Scores and targets of other shapes: each is compared with every other."""
    for call in _steady(log, lambda c: c.name.endswith(("mse_loss", "l1_loss", "huber_loss"))):
        if call.shape != call.target_shape:
            yield found(
                "loss-broadcast",
                "warning",
                _at(call),
                f"{call.name} of {call.shape} and {call.target_shape}: they are broadcast against "
                "each other, so every prediction is compared with every target. Give both one "
                "shape",
            )


def divergences(log: TrainingLog) -> Iterator[Finding]:
    """A kl_div whose first argument is not a log-probability."""
    for call in _steady(log, lambda c: c.name == "kl_div" and not c.log_probabilities):
        yield found(
            "logits-into-nll",
            "warning",
            _at(call),
            f"what kl_div takes first, {call.shape}, are not log-probabilities: apply "
            "log_softmax to it",
        )


def first_loss(log: TrainingLog) -> Iterator[Finding]:
    """The first loss beside that of guessing."""
    call = next((c for c in log.losses if c.step == 0 and c.classes > 1), None)
    if call is None or call.value is None or not math.isfinite(call.value):
        return
    guess = math.log(call.classes)
    if call.reduction == "mean" and not 0.5 * guess < call.value < 2 * guess + 0.5:
        yield found(
            "first-loss",
            "note",
            _at(call),
            f"the loss begins at {call.value:.3g}; guessing among {call.classes} classes gives "
            f"ln {call.classes} = {guess:.3g}. Weights that are made too large, a scale that is "
            "missing or tied heads begin elsewhere",
        )


def broken_step(log: TrainingLog) -> int:
    """The first step whose loss or gradient is no number, where nothing recovers from it; or 0."""
    values = [(c.step + 1, c.value) for c in log.backwards if c.value is not None]
    gradients = [(s.number, s.gradient) for s in log.steps if s.gradient is not None]
    bad = sorted(step for step, v in (*values, *gradients) if not math.isfinite(v))
    lost = [step for step, v in values if not math.isfinite(v)]
    last = max((step for step, _ in values), default=0)
    return bad[0] if bad and (lost or bad[0] == last) else 0


def not_finite(log: TrainingLog) -> Iterator[Finding]:
    """The first loss that is no number, and the function in whose backward pass it began."""
    bad = next(
        (c for c in log.backwards if c.value is not None and not math.isfinite(c.value)), None
    )
    if log.broken is not None:
        name = log.broken.function.removesuffix("0").removesuffix("Backward")
        before = f", and the loss of step {bad.step + 1} is {bad.value:g}" if bad else ""
        yield found(
            "gradient-origin",
            "error",
            (log.broken.file, log.broken.line),
            f"in the backward pass of step {log.broken_step} the gradient is finite up to "
            f"{name} on this line and NaN or infinite behind it{before}: its slope is infinite or "
            "undefined at what it was given, as that of a root, a norm or a quotient at 0",
        )
    if bad is not None:
        yield found(
            "loss-not-finite",
            "error",
            (bad.file, bad.line),
            f"the loss of step {bad.step + 1} is {bad.value:g}; attnlab trace {bad.file} --step "
            f"{log.broken_step or bad.step + 1} shows what leads to it",
        )


def rising(log: TrainingLog) -> Iterator[Finding]:
    """A loss that ends far above where it began."""
    values = [c.value for c in log.backwards if c.value is not None and math.isfinite(c.value)]
    lines = {(c.file, c.line) for c in log.backwards}
    if len(values) < 12 or len(lines) != 1:
        return
    first, last = sum(values[:4]) / 4, sum(values[-4:]) / 4
    if first > 0 and last > 1.5 * first:
        yield found(
            "loss-rises",
            "note",
            next(iter(lines)),
            f"the loss rose from {first:.3g} to {last:.3g} in {len(log.steps)} steps: a sign that "
            "is the wrong way round, a learning rate that is too large, or gradients that add up",
        )
