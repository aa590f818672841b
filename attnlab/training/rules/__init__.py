"""Rules of a training log: each is a function of the log that yields findings.

A rule that is not sure says nothing, or a note. Texts stand in `catalogue/findings.toml`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from attnlab.records.trace import Finding
from attnlab.training.log import TrainingLog
from attnlab.training.rules import evaluation, loop, losses, one_batch, surroundings, weights

RULES = (
    *(loop.gradients_left_over, loop.no_backward, loop.no_step, loop.step_before_backward),
    *(
        loop.cleared_before_step,
        loop.cleared_between_parts,
        loop.clipped_late,
        loop.schedule_order,
        loop.schedule_too_often,
    ),
    *(loop.optimizer_made_again, loop.accumulation_not_divided, loop.graphs_kept),
    *(loop.mode_while_training, loop.mode_while_evaluating, loop.same_batch),
    *(
        losses.forced_steps,
        losses.shifts,
        losses.padding_counted,
        losses.probabilities,
        losses.mixed_rows,
    ),
    *(losses.crossed_rows, losses.blanks),
    *(losses.first_loss, losses.not_finite, losses.rising),
    *(weights.without_gradient, weights.not_optimized, weights.update_sizes, weights.decay),
    *(weights.frozen_moves, weights.flagged_modules),
    weights.decay_groups,
    *(losses.broadcast_targets, losses.divergences, losses.divergence_targets, weights.rate_zero),
    *(surroundings.schedule_short, surroundings.rate_vanishes, surroundings.warm_up_stands),
    surroundings.rates_as_factors,
    surroundings.idle_optimizers,
    *(surroundings.frozen_adapters, surroundings.fast_followers, surroundings.seeded_steps),
    *(surroundings.restarted_loaders, surroundings.shared_rows, surroundings.wide_weights),
    *(one_batch.one_batch, evaluation.evaluations),
)


def find(log: TrainingLog) -> Iterator[Finding]:
    """Everything that the rules find."""
    for rule in RULES:
        yield from rule(log)


def summary(log: TrainingLog) -> Iterator[str]:
    """What there was to look at."""
    if text := one_batch.conclusion(log):
        yield f"one batch, learned again and again: {text}"
    yield from evaluation.told(log)
    models = [m for m in log.models if m.learning_calls]
    if not (log.steps or (log.models and log.backwards)):
        return
    own = bool(log.steps) and all(math.isnan(step.rate) for step in log.steps)
    kind = "steps without an optimizer" if own else "optimizer steps"
    batches = f", {log.batches} different batches" if log.models else ""
    yield f"{len(log.steps)} {kind}, {len(log.backwards)} backward passes{batches}"
    if models:
        yield "training of " + ", ".join(dict.fromkeys(m.kind for m in models))
    if log.losses:
        yield "calls of " + ", ".join(dict.fromkeys(call.name for call in log.losses))
    if log.weights:
        trained = sum(weight.moved for weight in log.weights)
        yield f"{len(log.weights)} parameters of the largest model, of which {trained} moved"
