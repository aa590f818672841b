"""Stages, the tasks after the bugs of a round: which one is next, and what became of them.

A stage opens once the bugs are done and the stage before it has passed. All that is known of it
lies in the events of the progress store: one when it opened, one for each grade.
"""

from __future__ import annotations

from collections.abc import Sequence

from attnlab.errors import Refused
from attnlab.practice.interviews import round_event
from attnlab.progress import Progress
from attnlab.records.practice import Event, Interview
from attnlab.records.program import Program, ProgramReport, Stage
from attnlab.records.scorecard import StageCard
from attnlab.suggest import did_you_mean

OPEN = "open"  # the outcome of the event that opens a stage


def events_of_round(store: Progress, program: Program) -> list[Event]:
    """What was done since the round, or its interview, was begun."""
    events = [event for event in store.events() if event.base == program.slug]
    starts = [number for number, event in enumerate(events) if event.kind == "start"]
    return events[starts[-1] :] if starts else events


def open_stage(events: Sequence[Event]) -> str:
    """The stage that was opened last; "" where none was."""
    opened = [e.question for e in events if e.kind == "stage" and e.outcome == OPEN]
    return opened[-1] if opened else ""


def has_passed(events: Sequence[Event], stage: str) -> bool:
    """Whether a stage of a round has passed, or its bugs where no stage is open."""
    kinds = ("stage",) if stage else ("grade", "submit", "end")
    return any(
        event.outcome == "passed" and event.question == stage
        for event in events
        if event.kind in kinds
    )


def find_stage(program: Program, name: str) -> Stage:
    """The stage of a program that a user names; raises `Refused`."""
    if stage := program.stage(name):
        return stage
    ids = [stage.id for stage in program.stages]
    hint = did_you_mean(name, ids) or f"its stages are {', '.join(ids)}"
    raise Refused(f"{program.name} has no stage {name}", hint, name)


def require_stages(program: Program) -> None:
    """Raise `Refused` where nothing follows the bugs of a program."""
    if not program.stages:
        hint = "attnlab list --kind program shows how many stages follow the bugs of each"
        raise Refused(f"{program.name} has no stages: its bugs are all there is", hint)


def choose_stage(program: Program, name: str, events: Sequence[Event]) -> Stage:
    """The stage that a user names, or the next one; raises `Refused` where it may not open yet."""
    require_stages(program)
    passed = {e.question for e in events if e.kind == "stage" and e.outcome == "passed"}
    left = [stage for stage in program.stages if stage.id not in passed]
    stage = find_stage(program, name) if name else next(iter(left), None)
    graded = [event for event in events if event.kind in ("grade", "submit", "end")]
    if not any(event.outcome == "passed" for event in graded):
        last = f"the last came out {graded[-1].outcome}" if graded else "there is no grade yet"
        raise Refused(
            f"a stage opens once the bugs of {program.name} are done, and {last}",
            f"attnlab grade {program.name} grades them; once no interview is going on, --skip-bugs "
            "starts a stage from the right program",
        )
    if stage is None:
        raise Refused(
            f"every stage of {program.name} has passed",
            "attnlab interview end shows the scorecard of a round that is going on; "
            "attnlab interview start draws a new one",
        )
    before = [other for other in left if other.order < stage.order]
    if before and stage.id not in passed:
        first = before[0].id
        opens = f"attnlab interview stage {first} opens it"
        goes_on = f"it is open: attnlab grade {program.name} tells what it lacks"
        hint = goes_on if first == open_stage(events) else opens
        raise Refused(f"{first} comes before {stage.id} and has not passed", hint)
    return stage


def keep_stage(
    store: Progress,
    program: Program,
    stage: str,
    report: ProgramReport,
    interview: Interview | None,
) -> None:
    """Note what a grade says of the stage that is open; nothing where none is."""
    if not stage:
        return
    if report.stage is None:  # the program did not even load
        outcome, text = "failed", report.message
    else:
        failed = report.stage.failed
        why = "a part of the program is wrong now" if not report.passed else ""
        outcome, text = "passed" if report.passed else "failed", failed.title if failed else why
    known = {"question": stage, "outcome": outcome, "text": text}
    store.add_event(round_event(program, interview, "stage", **known))


def stage_cards(
    program: Program, interview: Interview, until: float | None = None
) -> tuple[StageCard, ...]:
    """What became of each stage in an interview; the clock of one that has not passed runs on
    `until` then."""
    return tuple(
        _card(
            stage,
            [e for e in interview.of_kind("stage") if e.question == stage.id],
            grades=_count_grades(interview, stage),
            hints=sum(event.bug == stage.id for event in interview.of_kind("hint")),
            until=until,
        )
        for stage in program.stages
    )


def _count_grades(interview: Interview, stage: Stage) -> int:
    """How many grades were asked for while a stage was open; that of the end is not."""
    opened, count = "", 0
    for event in interview.events:
        opened = event.question if event.kind == "stage" and event.outcome == OPEN else opened
        count += opened == stage.id and event.kind in ("grade", "submit")
    return count


def _card(
    stage: Stage, events: Sequence[Event], grades: int, hints: int, until: float | None
) -> StageCard:
    opened = next((event.seconds for event in events if event.outcome == OPEN), None)
    graded = [event for event in events if event.outcome != OPEN]
    if opened is None:
        return StageCard(id=stage.id, title=stage.title, outcome="locked")
    passed = next((event for event in graded if event.outcome == "passed"), None)
    last = passed or (graded[-1] if graded else None)
    ended = passed.seconds if passed else until or (last.seconds if last else opened)
    return StageCard(
        id=stage.id,
        title=stage.title,
        outcome="passed" if passed else "failed" if last else "open",
        message="" if passed or last is None else last.text,
        seconds=ended - opened,
        minutes=stage.minutes,
        grades=grades,
        hints=hints,
    )
