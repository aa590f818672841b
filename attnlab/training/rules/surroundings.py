"""Schedules, loaders, copies that follow the model, seeds: what stands around the loop."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator

from attnlab.records.trace import Finding
from attnlab.training.log import Step, TrainingLog, Weight
from attnlab.training.rules.base import found, line_of
from attnlab.training.rules.losses import begins_beside_guessing

SEVERAL = 4  # steps that must show the same
RATE = 0.05  # that is meant as a rate, not as a factor of one
LONG = 50  # moves of a warm-up that hardly counts in epochs
FAST = 0.8  # of the distance that a slow copy goes in one step
ADAPTERS = re.compile(
    r"(^|[._])(lora|adapter|prompt|prefix|ia3|delta)([._]|$|s[._]?)", re.IGNORECASE
)
TURNING = {"CosineAnnealingLR", "CosineAnnealingWarmRestarts", "StepLR", "MultiStepLR"}
ADAPTING = re.compile(r"lora|adapter", re.IGNORECASE)  # modules that adapters are
BUILT_IN = {"Linear", "Embedding", "Bilinear", "MultiheadAttention", "LSTM", "GRU", "RNN"}
TABLES = re.compile(r"emb|pos|tok|table|quer(y|ies)$|latent|mem|cls|code|prompt|rel", re.IGNORECASE)
WIDE = 4.0  # std * sqrt(fan_in) of a matrix: about 1 keeps the size of what goes through


def schedule_short(log: TrainingLog) -> Iterator[Finding]:
    """A schedule that is over, or turns round, long before training is."""
    epoch = max((loader.batches for loader in log.loaders), default=0)
    for schedule in log.schedules:
        by_batch = schedule.shared >= SEVERAL and schedule.moves >= 0.9 * len(log.steps)
        horizon = schedule.horizon
        if (
            schedule.kind not in TURNING
            or not by_batch
            or horizon is None
            or horizon >= max(epoch, schedule.moves)
        ):
            continue
        yield found(
            "schedule-short",
            (schedule.file, schedule.line),
            f"{schedule.kind} is planned for {horizon} moves and moves with every batch"
            f"{f'; an epoch has {epoch} of them' if epoch else ''}: it is over, or begins anew, "
            "within the first epoch. Step it once per epoch, or plan it in batches",
        )


def rate_vanishes(log: TrainingLog) -> Iterator[Finding]:
    """A learning rate that falls to nothing within the steps that were watched."""
    rates = [step.rate for step in log.steps]
    top = max(rates, default=0.0)
    low = next((i for i, rate in enumerate(rates) if top > 0 and rate < 1e-3 * top), None)
    if low is None or rates.index(top) > low or not log.schedules:
        return
    schedule = max(log.schedules, key=lambda s: s.moves)
    yield found(
        "schedule-short",
        (schedule.file, schedule.line),
        schedule=schedule,
        top=top,
        small=rates[low],
        steps=low + 1,
    )


def warm_up_stands(log: TrainingLog) -> Iterator[Finding]:
    """A warm-up planned in steps that moves once in an epoch."""
    for schedule in log.schedules:
        slow = schedule.warm_up >= LONG and len(log.steps) >= 10 * max(schedule.moves, 1)
        if slow:
            yield found(
                "schedule-slow",
                (schedule.file, schedule.line),
                schedule=schedule,
                steps=len(log.steps),
                rate=log.steps[-1].rate,
            )


def rates_as_factors(log: TrainingLog) -> Iterator[Finding]:
    """A function of a schedule that gives the rate itself, where a factor is asked for."""
    for schedule in log.schedules:
        if schedule.kind == "LambdaLR" and 0 < schedule.peak < RATE and 0 < schedule.base < RATE:
            yield found(
                "rate-squared",
                (schedule.file, line_of(log.source, r"\bLambdaLR\(", 0, 0) or schedule.line),
                f"the function of LambdaLR gives at most {schedule.peak:.3g}, and multiplies the "
                f"optimizer's own rate {schedule.base:.3g} with it: what is used is at most "
                f"{schedule.peak * schedule.base:.3g}. Return a factor, 1.0 for the full rate",
            )


def idle_optimizers(log: TrainingLog) -> Iterator[Finding]:
    """Of several optimizers, one whose parameters never get a gradient."""
    by_optimizer: dict[int, list[Step]] = defaultdict(list)
    for step in log.steps:
        by_optimizer[step.optimizer].append(step)
    if len(by_optimizer) < 2:
        return
    for steps in by_optimizer.values():
        closed = all("closure" in step.events for step in steps)  # which makes its own gradients
        if len(steps) >= 3 and not closed and not any(step.gradient for step in steps):
            first = steps[0]
            line = line_of(log.source, r"\.detach\(\)|\.data\b|no_grad", first.line, 15)
            yield found(
                "no-gradient",
                (first.file, line or first.line),
                f"the {len(steps)} steps of line {first.line} had no gradient: nothing leads from "
                "their loss back to the parameters of this optimizer"
                f"{', and this line cuts the graph' if line else ''}",
            )


def frozen_adapters(log: TrainingLog) -> Iterator[Finding]:
    """Adapters that do not learn, though they are what is meant to."""
    learning = {w.layer for w in log.weights if w.trainable}
    frozen = [
        w
        for w in log.weights
        if not w.trainable
        and (ADAPTERS.search(w.name) or (ADAPTING.search(w.layer) and w.layer not in learning))
    ]
    if not frozen:
        return
    line = line_of(log.source, r"requires_grad(_\(False| = False)", 0, 0)
    yield found(
        "adapters-frozen",
        (log.steps[0].file if log.steps else "", line),
        frozen=frozen,
        more=len(frozen) - 1,
    )


def fast_followers(log: TrainingLog) -> Iterator[Finding]:
    """Averages that are hardly any, and best states that are not kept."""
    file = log.steps[0].file if log.steps else ""
    for follower in log.followers:
        if follower.kind == "reference":
            line = line_of(log.source, r"=\s*[\w.]+\.state_dict\(\)\s*$", 0, 0)
            yield found("state-not-copied", (file, line), severity="warning" if line else "note")
        elif follower.kind == "alias":
            line = line_of(log.source, r"[^.]\w*\] = [\w.]+\.(data|detach\(\))\s*(#|$)", 0, 0)
            if line and line_of(log.source, r"lerp_\(|\.mul_\(|decay \*|\* decay", 0, 0):
                yield found("average-aliased", (file, line))
        elif follower.kind == "buffers":
            if follower.share == 0.0:
                yield found(
                    "buffers-left-behind",
                    (file, line_of(log.source, "in zip\\(.*\\.parameters\\(\\)", 0, 0)),
                )
        elif follower.share > FAST:
            line = line_of(log.source, r"lerp_\(|\.mul_\(|\.copy_\(|decay|momentum", 0, 0)
            line = line_of(log.source, r"lerp_\(|\.mul_\(.*add_\(", 0, 0) or line
            yield found("average-too-fast", (file, line), percent=100 * follower.share)


def seeded_steps(log: TrainingLog) -> Iterator[Finding]:
    """The same seed in every step."""
    file, line, count = log.seeded
    if count >= SEVERAL:
        yield found("seed-in-the-loop", (file, line), count=count)


def restarted_loaders(log: TrainingLog) -> Iterator[Finding]:
    """A loader that is begun anew for every batch."""
    for loader in log.loaders:
        if loader.batches > 1 and loader.starts >= max(SEVERAL, 0.8 * len(log.steps)):
            same = "a random batch each time" if loader.shuffles else "the first batch each time"
            yield found(
                "loader-restarted",
                loader.started,
                severity="note" if loader.shuffles else "warning",
                loader=loader,
                same=same,
                steps=len(log.steps),
            )


def shared_rows(log: TrainingLog) -> Iterator[Finding]:
    """Rows to validate on that are trained on too."""
    for loader in log.loaders:
        if loader.shared > 0.02:
            yield found(
                "rows-shared",
                (loader.file, loader.line),
                loader=loader,
                percent=100 * loader.shared,
            )


def _is_bare(weight: Weight) -> bool:
    """A matrix of the user's own, and no table of vectors."""
    own = weight.layer not in BUILT_IN and not TABLES.search(weight.name)
    return own and weight.spread is not None and len(weight.shape) == 2


def _spread_by_columns(weight: Weight) -> float:
    rows, columns = weight.shape
    return (weight.spread or 0.0) * math.sqrt(rows / columns)


def wide_weights(log: TrainingLog) -> Iterator[Finding]:
    """Matrices that are made many times too large, or all alike."""
    linear = [w for w in log.weights if w.layer == "Linear" and w.spread is not None]
    wide = [w for w in linear if (w.spread or 0) > WIDE]
    if begins_beside_guessing(log):  # what is multiplied from the right has its inputs first
        wide += [w for w in log.weights if _is_bare(w) and _spread_by_columns(w) > WIDE]
    alike = [w for w in linear if w.spread == 0.0 and not w.received]
    place = (log.steps[0].file if log.steps else "", 0)
    if wide:
        line = line_of(log.source, r"init\.(normal_|uniform_)|\.(normal_|uniform_)\(|randn\(", 0, 0)
        yield found(
            "initialization",
            (place[0], line),
            f"{wide[0].name}{f' and {len(wide) - 1} more' if len(wide) > 1 else ''} begin about "
            f"{wide[0].spread:.0f} times larger than keeps values at their size (std * "
            "sqrt(fan_in)): softmax saturates and the first loss is far above guessing",
        )
    if len(alike) > 1:
        line = line_of(log.source, r"init\.(zeros_|constant_|ones_)|\.(zero_|fill_)\(", 0, 0)
        yield found("initialization", (place[0], line), alike=alike, more=len(alike) - 1)
