"""Say it aloud, then compare it with what is true.

What an interviewer asks next about a bug. Say your answer aloud, look at the true one, then tick
how much of it you said.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from attnlab.questions.base import Judged, Part, Runner, about, asked, read_choice
from attnlab.questions.kinds.effect import LONGEST, changed_lines
from attnlab.questions.material import Patched, excerpt
from attnlab.records.practice import Mark

MATERIAL = "patched"
ANSWER = "what is true"
GOES_ON = "And "  # of a question that says nothing without the one before it
TICKS: dict[str, Mark] = {"all of it": "right", "part of it": "partly", "little of it": "wrong"}


def draw(one: Patched, dice: random.Random, runner: Runner) -> Sequence[Part] | None:  # noqa: ARG001
    found = _asked_next(one, dice) if one.id else None
    if found is None:
        return None
    prompt, answer, code = found
    aloud = f"{prompt} Say it aloud, then type 1 to compare: how much of it did you say?"
    question = asked(aloud, "1 for what is true, or a letter")
    part = Part(
        question=replace(question, choices=tuple(TICKS), measurements=(ANSWER,)),
        right=answer,
        judge=_tick,
        evidence={ANSWER: answer},
    )
    return [about(part, code, {"base": one.base, "bug": one.id, "category": one.category})]


def _tick(typed: str) -> Judged:
    ticked = read_choice(typed, tuple(TICKS))
    return Judged(TICKS[ticked], ticked, "")


def _asked_next(one: Patched, dice: random.Random) -> tuple[str, str, dict[str, Any]] | None:
    """A question that follows a bug, beside the change that it is about."""
    lines = list(changed_lines(one))
    bug = one.program.patches[one.id] if one.program else one.challenge
    alone = [f for f in bug.follow_ups if not f.question.startswith(GOES_ON)] if bug else []
    if one.decoy or not alone or len(lines) > LONGEST:
        return None
    chosen = dice.choice(alone)
    code = excerpt(one.right, lines[0][0]).code(one.file, lines[0][0])
    log = ("somebody changed it, which was a bug:", *(text for _, text in lines))
    return chosen.question, chosen.answer, code | {"log": log}
