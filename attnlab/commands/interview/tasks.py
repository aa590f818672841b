"""The task of a round that is open: what is asked, what becomes of an answer, what is kept."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

from attnlab.commands.base import catalogue, limits, progress, run_job

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attnlab.questions.base import Judged, Part, Runner
    from attnlab.records import Challenge, Limits
    from attnlab.records.practice import EventKind, Interview
    from attnlab.records.quiz import Measurement, QuizVerdict
    from attnlab.records.scorecard import TaskCard
    from attnlab.render.format_round import TaskPage

SKIP, LEFT_OUT = "skip", "left out"


class Asked(NamedTuple):
    """The task that is open, and what is asked of it now."""

    card: TaskCard
    parts: Sequence[Part]
    number: int  # of the part, from 1
    file: Path | None = None  # that it asks for
    given: str = ""  # its text at first

    @property
    def part(self) -> Part:
        return self.parts[self.number - 1]

    @property
    def shown_file(self) -> str:
        from attnlab.files import shown_path

        return shown_path(self.file) if self.file else ""


def ask_next(
    ctx: typer.Context, interview: Interview, runner: Runner, bounds: Limits | None = None
) -> Asked | None:
    """What is asked now; None where every task is done."""
    from attnlab.catalogue.texts import shipped_text
    from attnlab.practice.formats import open_task

    card = open_task(interview)
    if card is None:
        return None
    if not card.task.is_file:
        return Asked(card, draw(ctx, card.task.id, runner), len(card.verdicts) + 1)
    path = Path(interview.path) / f"task{card.number}.py"
    challenge = catalogue(ctx).find(card.task.id)
    part = _file_part(challenge, path, bounds or limits("", ""))
    return Asked(card, [_or_skip(part)], 1, path, shipped_text(challenge))


def require_open(asked: Asked | None) -> Asked:
    from attnlab.errors import Refused

    if asked is None:
        raise Refused("every task is done", "attnlab interview end shows the scorecard")
    return asked


def draw(ctx: typer.Context, name: str, runner: Runner) -> list[Part]:
    """The parts of a question, each of which may be left out."""
    from attnlab.questions.base import draw_parts, read_id

    asked = read_id(name)
    return [*map(_or_skip, draw_parts(asked.kind, asked.seed, catalogue(ctx), runner))]


def _or_skip(part: Part) -> Part:
    from attnlab.questions.base import Judged

    def judge(typed: str) -> Judged:
        return Judged("wrong", LEFT_OUT, "") if typed.lower() == SKIP else part.judge(typed)

    return replace(part, judge=judge)


def _file_part(challenge: Challenge, path: Path, bounds: Limits) -> Part:
    """A file to write or to fix, as a question that its grade answers."""
    from attnlab.questions.base import Judged, Part, asked
    from attnlab.questions.effects import INTERNAL
    from attnlab.target.challenge_job import challenge_job
    from attnlab.target.source import read_source
    from attnlab.verdict import make_verdict

    def judge(_: str) -> Judged:
        job = challenge_job(challenge, read_source(path, path.name), limits=bounds)
        report = run_job(replace(job, stages=("check",), until="reason"))
        verdict = make_verdict(challenge, path.name, report)
        passed = verdict.outcome == "passed"
        message = "" if passed else INTERNAL.sub("", verdict.message)
        return Judged("right" if passed else "wrong", path.name, message)

    return Part(
        question=asked(challenge.task, "a file"),
        right=f"attnlab solution {challenge.name}",
        judge=judge,
        base=challenge.slug,
        category=challenge.category or challenge.topic,
    )


def task_page(interview: Interview, asked: Asked | None) -> TaskPage | None:
    """The task as it is shown, with its file if that is missing: nothing says where it is from."""
    from attnlab.render.format_round import TaskPage

    if asked is None:
        return None
    if asked.file and not asked.file.exists():
        _write(asked.file, asked.given)
    place = f"task {asked.card.number} of {len(interview.tasks)}"
    question = replace(asked.part.question, id=place, kind=asked.card.task.kind, seed=0)
    return TaskPage(question=question, part=asked.number, file=asked.shown_file)


def _write(path: Path, text: str) -> None:
    from attnlab.errors import Refused
    from attnlab.files import write_whole

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)
    except OSError as error:
        hint = "attnlab interview status tries again; the clock and the answers are kept"
        raise Refused(f"{path} cannot be written: {error.strerror}", hint, str(path)) from None


# ---------------------------------------------------------------- what is kept


def measured(interview: Interview, part: Part) -> set[str]:
    """What was measured for this question so far."""
    return {e.question for e in interview.of_kind("ask") if e.text == part.question.id}


def seconds_taken(interview: Interview) -> float:
    """Since the answer before, or since the start."""
    before = max([interview.started, *(event.at for event in interview.of_kind("task"))])
    return max(time.time(), interview.last) - before


def keep_verdict(
    interview: Interview, asked: Asked, verdict: QuizVerdict
) -> tuple[Interview, QuizVerdict]:
    """The interview with an answer that is kept, and the verdict as it is kept. A file that is not
    right may be handed in again."""
    from attnlab.practice.interviews import make_event, require_kept
    from attnlab.records import to_json

    part, graded = asked.part, bool(asked.file) and verdict.answer != LEFT_OUT
    right = verdict.outcome == "right"
    kept = replace(verdict, rows=(), next="again" if graded and not right else verdict.next)
    known = {"bug": part.bug, "question": asked.card.task.kind, "category": part.category}
    event = make_event(interview, "task", outcome=kept.outcome, text=to_json(kept), **known)
    event = replace(event, base=part.base, seconds=kept.seconds)
    with progress() as store:
        if graded:
            outcome = "passed" if right else "failed"
            store.add_grade(part.base, outcome, float(right), str(asked.file), event)
        else:
            store.add_event(event)
        require_kept(store)
    return replace(interview, events=(*interview.events, event)), kept


def keep_measurement(interview: Interview, part: Part, found: Measurement) -> None:
    keep(interview, "ask", question=found.name, text=part.question.id)


def keep(interview: Interview, kind: EventKind, **more: str) -> Interview:
    """The interview with what is done now."""
    from attnlab.practice.interviews import keep, make_event

    event = make_event(interview, kind, **more)
    with progress() as store:
        keep(store, event)
    return replace(interview, events=(*interview.events, event))
