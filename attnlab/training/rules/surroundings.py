"""Schedules, loaders, copies that follow the model, seeds: what stands around the loop."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from attnlab.records.trace import Finding
from attnlab.training.log import Step, TrainingLog
from attnlab.training.rules.base import found, line_of

SEVERAL = 4  # steps that must show the same
LONG = 50  # moves of a warm-up that hardly counts in epochs
FAST = 0.8  # of the distance that a slow copy goes in one step
ADAPTERS = re.compile(
    r"(^|[._])(lora|adapter|prompt|prefix|ia3|delta)([._]|$|s[._]?)", re.IGNORECASE
)
TURNING = {"CosineAnnealingLR", "CosineAnnealingWarmRestarts", "StepLR", "MultiStepLR"}
ADAPTING = re.compile(r"lora|adapter", re.IGNORECASE)  # modules that adapters are
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
            "warning",
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
        "warning",
        (schedule.file, schedule.line),
        f"the learning rate falls from {top:.3g} to {rates[low]:.3g} within {low + 1} steps: "
        f"{schedule.kind} moves too often, or is planned too short",
    )


def warm_up_stands(log: TrainingLog) -> Iterator[Finding]:
    """A warm-up planned in steps that moves once in an epoch."""
    for schedule in log.schedules:
        slow = schedule.warm_up >= LONG and len(log.steps) >= 10 * max(schedule.moves, 1)
        if slow:
            yield found(
                "schedule-slow",
                "warning",
                (schedule.file, schedule.line),
                f"{schedule.kind} begins low and takes {schedule.warm_up} moves to come near its "
                f"top, and moved {schedule.moves} times in {len(log.steps)} optimizer steps: the "
                f"learning rate stays at {log.steps[-1].rate:.3g}. Step it with every batch, or "
                "plan the warm-up in epochs",
            )


def idle_optimizers(log: TrainingLog) -> Iterator[Finding]:
    """Of several optimizers, one whose parameters never get a gradient."""
    by_optimizer: dict[int, list[Step]] = defaultdict(list)
    for step in log.steps:
        by_optimizer[step.optimizer].append(step)
    if len(by_optimizer) < 2:
        return
    for steps in by_optimizer.values():
        if len(steps) >= 3 and not any(step.gradient for step in steps):
            first = steps[0]
            line = line_of(log.source, r"\.detach\(\)|\.data\b|no_grad", first.line, 15)
            yield found(
                "no-gradient",
                "warning",
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
        "warning",
        (log.steps[0].file if log.steps else "", line),
        f"{frozen[0].name} and {len(frozen) - 1} more are frozen: the adapters are what should "
        "learn. Freeze the base before they are put in, or by name",
    )


def fast_followers(log: TrainingLog) -> Iterator[Finding]:
    """Averages that are hardly any, and best states that are not kept."""
    file = log.steps[0].file if log.steps else ""
    for follower in log.followers:
        if follower.kind == "reference":
            line = line_of(log.source, r"=\s*[\w.]+\.state_dict\(\)\s*$", 0, 0)
            yield found(
                "state-not-copied",
                "warning" if line else "note",
                (file, line),
                "a kept state_dict() is no copy: its tensors are the model's own, and change with "
                "every step. Keep copy.deepcopy(model.state_dict())",
            )
        elif follower.kind == "buffers":
            if follower.share == 0.0:
                yield found(
                    "buffers-left-behind",
                    "warning",
                    (file, line_of(log.source, r"in zip\(.*\.parameters\(\)", 0, 0)),
                    "the copy follows the parameters of the model and none of its buffers: running "
                    "statistics of normalization stay as they were made, and the copy is "
                    "evaluated with them. Copy buffers() as well",
                )
        elif follower.share > FAST:
            line = line_of(log.source, r"lerp_\(|\.mul_\(|\.copy_\(|decay|momentum", 0, 0)
            line = line_of(log.source, r"lerp_\(|\.mul_\(.*add_\(", 0, 0) or line
            yield found(
                "average-too-fast",
                "warning",
                (file, line),
                f"the copy that should follow slowly goes {100 * follower.share:.0f} % of the way "
                "to the model in each step: decay and 1 - decay are exchanged, or it is copied",
            )


def seeded_steps(log: TrainingLog) -> Iterator[Finding]:
    """The same seed in every step."""
    file, line, count = log.seeded
    if count >= SEVERAL:
        yield found(
            "seed-in-the-loop",
            "warning",
            (file, line),
            f"the same seed was set {count} times between steps: every step draws the same "
            "batch, the same noise and the same dropout. Set it once",
        )


def restarted_loaders(log: TrainingLog) -> Iterator[Finding]:
    """A loader that is begun anew for every batch."""
    for loader in log.loaders:
        if loader.batches > 1 and loader.starts >= max(SEVERAL, 0.8 * len(log.steps)):
            same = "a random batch each time" if loader.shuffles else "the first batch each time"
            yield found(
                "loader-restarted",
                "note" if loader.shuffles else "warning",
                loader.started,
                f"the loader of line {loader.line} was begun {loader.starts} times in "
                f"{len(log.steps)} steps, and has {loader.batches} batches: next(iter(loader)) "
                f"gives {same}. Make the iterator once for an epoch",
            )


def shared_rows(log: TrainingLog) -> Iterator[Finding]:
    """Rows to validate on that are trained on too."""
    for loader in log.loaders:
        if loader.shared > 0.02:
            yield found(
                "rows-shared",
                "warning",
                (loader.file, loader.line),
                f"{100 * loader.shared:.0f} % of the rows of this loader are those of the loader "
                f"of line {loader.twin}: what is validated on was trained on",
            )


def wide_weights(log: TrainingLog) -> Iterator[Finding]:
    """Matrices that are made many times too large, or all alike."""
    linear = [w for w in log.weights if w.layer == "Linear" and w.spread is not None]
    wide = [w for w in linear if (w.spread or 0) > WIDE]
    alike = [w for w in linear if w.spread == 0.0 and not w.received]
    place = (log.steps[0].file if log.steps else "", 0)
    if wide:
        line = line_of(log.source, r"init\.(normal_|uniform_)|\.(normal_|uniform_)\(|randn\(", 0, 0)
        yield found(
            "initialization",
            "warning",
            (place[0], line),
            f"{wide[0].name}{f' and {len(wide) - 1} more' if len(wide) > 1 else ''} begin about "
            f"{wide[0].spread:.0f} times larger than keeps values at their size (std * "
            "sqrt(fan_in)): softmax saturates and the first loss is far above guessing",
        )
    if len(alike) > 1:
        line = line_of(log.source, r"init\.(zeros_|constant_|ones_)|\.(zero_|fill_)\(", 0, 0)
        yield found(
            "initialization",
            "warning",
            (place[0], line),
            f"{alike[0].name} and {len(alike) - 1} more begin with one number everywhere, and no "
            "gradient reached them: units that begin alike stay alike",
        )
