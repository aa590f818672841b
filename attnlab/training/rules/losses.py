"""What goes into the loss, and what comes out of it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator

from attnlab.records.trace import Finding
from attnlab.training.log import LossCall, TrainingLog
from attnlab.training.rules.base import found, line_of

SOME = 0.2  # of the calls: in a small batch all rows may happen to be of one length
LEFT_OUT = (  # a line that gives labels the number of those that do not count
    r"^(?!.*ignore_index).*(\] = |masked_fill_?\(.*, |where\(.*, |full_like\(.*, )"
    r"(-100|[\w.]*(ignore|IGNORE)\w*)(?![\w.])"
)
FED = r"= *[^=]*\b(t|tr)?(gt|arg|rg|targets?|labels?|ys?)\[(:, *)?[a-z_]\w*\]"
FORCES = re.compile(r"teacher|forc(ed|ing)", re.IGNORECASE)
REBUILT = re.compile(r"vae\b|auto_?enc|recon|bottleneck|denois", re.IGNORECASE)


def _at(call: LossCall) -> tuple[str, int]:
    return call.file, call.line


def _steady(
    log: TrainingLog, shows: Callable[[LossCall], bool], share: float = 1.0
) -> Iterator[LossCall]:
    """Of each line: a call that shows it, where this share of the line's calls does."""
    lines: dict[tuple[str, int], list[LossCall]] = {}
    for call in log.losses:
        lines.setdefault(_at(call), []).append(call)
    for calls in lines.values():
        shown = [*filter(shows, calls)]
        if shown and len(shown) >= share * len(calls):
            yield shown[0]


def forced_steps(log: TrainingLog) -> Iterator[Finding]:
    """Teacher forcing with the very token that the step is to predict."""
    for call in _steady(log, lambda c: c.fed, SOME):
        made = line_of(log.source, FED, 0, 0)
        yield found(
            "labels-not-shifted",
            (call.file, made or call.line),
            f"in {100 * call.agreement:.0f} % of the steps the model is fed the very token that "
            "it must predict there: it learns to copy, and cannot go on by itself. Feed the "
            "target of the step before, and the begin token in the first",
            severity="warning" if FORCES.search(log.source) else "note",
        )


def shifts(log: TrainingLog) -> Iterator[Finding]:
    """Targets that are the inputs, or two positions ahead of them."""
    for call in _steady(log, lambda c: c.shift not in (None, 1) and not c.fed):
        share = f"{100 * call.agreement:.0f} %"
        if call.hides:
            made = line_of(log.source, LEFT_OUT, 0, 0)
            yield found(
                "loss-of-what-is-seen",
                (call.file, made or call.line),
                f"{share} of the targets that count are the very ids that the model sees there, "
                "and those at hidden places are left out (ignore_index): it learns to copy, and "
                "nothing asks what is hidden. Leave out the places that are not: labels[~hidden]",
            )
        elif call.shift == 0:
            yield found(
                "labels-not-shifted",
                _at(call),
                severity="note" if REBUILT.search(log.source) else "warning",
                share=share,
            )
        else:
            ahead = "two positions ahead of" if call.shift == 2 else "one position behind"
            yield found("labels-shifted-twice", _at(call), ahead=ahead, share=share)


def padding_counted(log: TrainingLog) -> Iterator[Finding]:
    """Padding among the targets of a mean."""
    for call in _steady(log, lambda c: c.padded > 0.02 and not c.blank, SOME):
        if call.reduction == "none":
            continue
        message = ""
        if call.name == "ctc_loss":
            message = (
                f"{100 * call.padded:.0f} % of the targets are {call.padding}, with which their "
                f"rows are filled up, and target_lengths counts them all: it is "
                f"{call.target_shape[1]} for every row. Give each target's own length"
            )
        yield found("padding-counted", _at(call), message, call=call, percent=100 * call.padded)


def blanks(log: TrainingLog) -> Iterator[Finding]:
    """Labels of CTC that are its blank, at the line that makes the loss."""
    for call in _steady(log, lambda c: c.blank, SOME):
        place = (call.file, line_of(log.source, r"\bCTCLoss\(", 0, 0) or call.line)
        yield found("blank-in-targets", place, call=call, percent=100 * call.padded)


def probabilities(log: TrainingLog) -> Iterator[Finding]:
    """Probabilities where logits are expected, and logits where logarithms are."""
    for call in _steady(log, lambda c: c.name == "cross_entropy" and c.probabilities):
        yield found("probabilities-into-loss", _at(call), call=call)
    for call in _steady(log, lambda c: c.name.endswith("with_logits") and c.probabilities):
        yield found(
            "probabilities-into-loss",
            _at(call),
            f"all scores {call.shape} that {call.name} takes lie between 0 and 1: they seem to be "
            "probabilities already, and it applies a sigmoid to them. Give it the logits",
        )
    for call in _steady(log, lambda c: c.name == "nll_loss" and not c.log_probabilities):
        if call.classes > 1:
            yield found(
                "logits-into-nll",
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
        yield found("log-probabilities-into-loss", _at(call), severity="note")


def mixed_rows(log: TrainingLog) -> Iterator[Finding]:
    """Rows of scores that are no rows of the model's output."""
    for call in _steady(log, lambda c: c.mixed):
        yield found("scores-mixed", _at(call), call=call)


def crossed_rows(log: TrainingLog) -> Iterator[Finding]:
    """Targets that are flattened in another order than the scores."""
    for call in _steady(log, lambda c: c.crossed):
        yield found("targets-crossed", _at(call), call=call)


def broadcast_targets(log: TrainingLog) -> Iterator[Finding]:
    """Scores and targets of other shapes: each is compared with every other."""
    for call in _steady(log, lambda c: c.name.endswith(("mse_loss", "l1_loss", "huber_loss"))):
        if call.shape != call.target_shape:
            yield found("loss-broadcast", _at(call), call=call)


def divergences(log: TrainingLog) -> Iterator[Finding]:
    """A kl_div, or a ctc_loss, whose first argument is not a log-probability."""
    named = ("kl_div", "ctc_loss")
    for call in _steady(log, lambda c: c.name in named and not c.log_probabilities):
        if call.probabilities:
            yield found(
                "probabilities-into-loss",
                _at(call),
                f"the scores {call.shape} that {call.name} takes are probabilities, and it takes "
                "their logarithms: it can fall below 0 so. Use log_softmax where softmax is",
            )
        else:
            yield found("logits-into-nll", _at(call), call=call)


def divergence_targets(log: TrainingLog) -> Iterator[Finding]:
    """A kl_div whose target is not what its `log_target` says."""
    for call in _steady(log, lambda c: c.below):
        yield found("divergence-target", _at(call), call=call)


def begins_beside_guessing(log: TrainingLog) -> LossCall | None:
    """The first loss, where it is far from that of guessing."""
    call = next((c for c in log.losses if c.step == 0 and c.classes > 1), None)
    if call is None or call.value is None or not math.isfinite(call.value):
        return None
    guess = math.log(call.classes)
    usual = call.reduction != "mean" or 0.5 * guess < call.value < 2 * guess + 0.5
    return None if usual else call


def first_loss(log: TrainingLog) -> Iterator[Finding]:
    """The first loss beside that of guessing."""
    if call := begins_beside_guessing(log):
        yield found(
            "first-loss", _at(call), severity="note", call=call, guess=math.log(call.classes)
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
            (log.broken.file, log.broken.line),
            severity="error",
            before=before,
            log=log,
            name=name,
        )
    if bad is not None:
        yield found(
            "loss-not-finite",
            (bad.file, bad.line),
            severity="error",
            bad=bad,
            first=bad.step + 1,
            number=log.broken_step or bad.step + 1,
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
            next(iter(lines)),
            severity="note",
            first=first,
            last=last,
            steps=len(log.steps),
        )
