"""Interviews: rounds against a clock that runs on between commands. All there is of one lies in the
events of the progress store, so nothing is lost with a terminal, a folder or a machine."""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnlab.errors import Refused
from attnlab.progress import Progress
from attnlab.records.practice import Event, EventKind, Interview, RoundTask

if TYPE_CHECKING:  # every command asks whether an interview is going on: that must cost little
    from attnlab.records.program import Program, ProgramReport

END = "attnlab interview end shows the scorecard, attnlab interview abandon drops it"


def begin(store: Progress, slug: str, minutes: int, seed: int, **more: Any) -> Interview:
    """Note that an interview begins now; raises `Refused` where one is going on."""
    refuse_second(store)
    number = next_number(store)
    known = {"place": str(Path.cwd()), "minutes": minutes, "seed": seed, **more}
    keep(store, Event(kind="start", base=slug, interview=number, text=json.dumps(known)))
    return all_interviews(store)[-1]


def next_number(store: Progress) -> int:
    return max((event.interview for event in store.events()), default=0) + 1


def keep(store: Progress, event: Event) -> None:
    """Note what was done; raises `Refused` where it would be forgotten with this command."""
    store.add_event(event)
    require_kept(store)


def require_kept(store: Progress) -> None:
    """Raise `Refused` where what is done is forgotten with this command."""
    if store.path is None:
        why, _, hint = store.warning.rpartition("; ")
        store.warning = ""  # it is said by this error
        raise Refused(f"{why}, and an interview lives on between commands", hint)


def refuse_second(store: Progress) -> None:
    """Raise `Refused` where an interview is going on, or where none can be kept."""
    require_kept(store)
    if running := current(store):
        clock = clock_text(running, time.time())
        raise Refused(f"interview {running.number}, {running.name}, is going on ({clock})", END)


def all_interviews(store: Progress) -> list[Interview]:
    """Every interview that was begun, the first one first."""
    by_number: dict[int, list[Event]] = {}
    for event in store.events():
        if event.interview:
            by_number.setdefault(event.interview, []).append(event)
    begun = (events for _, events in sorted(by_number.items()) if events[0].kind == "start")
    return [_interview(events) for events in begun]


def current(store: Progress) -> Interview | None:
    """The interview that is going on."""
    return next((i for i in reversed(all_interviews(store)) if i.closing is None), None)


def require_current(store: Progress) -> Interview:
    """The interview that is going on; raises `Refused` where there is none."""
    if found := current(store):
        return found
    raise Refused("no interview is going on", "attnlab interview start begins one")


def make_event(interview: Interview, kind: EventKind, **more: str) -> Event:
    """What is done now in an interview, with the time on its clock."""
    seconds = interview.elapsed(time.time())
    return Event(
        kind=kind,
        base=interview.slug,
        at=interview.started + seconds,
        seconds=seconds,
        hints=len(interview.of_kind("hint")),
        interview=interview.number,
        **more,
    )


def round_event(
    program: Program, interview: Interview | None, kind: EventKind, **more: Any
) -> Event:
    """What is done now in a round, with the time on the clock of its interview if it has one."""
    if interview:
        return make_event(interview, kind, **more)
    return Event(kind=kind, base=program.slug, **more)


def read_details(event: Event) -> dict[str, Any]:
    """What an event of a kind with details holds; {} where its text is none of ours."""
    try:
        known = json.loads(event.text or "{}")
    except ValueError:
        return {}
    return known if isinstance(known, dict) else {}


def report_text(report: ProgramReport, changes: Mapping[str, Any]) -> str:
    """What is kept of a grade: the bugs that are gone, the parts that are wrong, the changes."""
    known = {
        "bugs": {result.id: result.fixed for result in report.bugs},
        "wrong": [(p.id, p.title, p.message) for p in report.parts if p.outcome != "passed"],
    }
    return json.dumps(known | dict(changes))


def clock_text(interview: Interview, now: float) -> str:
    """`38 of 60 minutes left`; in a stage its own clock: that of the bugs is over."""
    if now < interview.last:
        behind = _minutes(interview.last - now)
        return f"the clock stands still: that of this machine was set back by {behind} or more"
    if event := interview.opened_stage:
        return (
            f"{_minutes(interview.stage_seconds(now))} in stage {event.question}, without a limit"
        )
    if not interview.minutes:
        return f"{_minutes(interview.elapsed(now))}, no limit"
    left = interview.left(now)
    if left < 0:
        return f"the time ran out {_minutes(-left)} ago"
    seconds = math.ceil(left)
    shown = f"{seconds // 60}:{seconds % 60:02}" if 120 <= seconds < 600 else ""
    shown = shown or (f"{round(left / 60)}" if seconds >= 120 else _minutes(seconds))
    return f"{shown} of {_minutes(60 * interview.minutes)} left"


def describe_clock(interview: Interview, with_name: bool = False) -> str:
    """`interview 3, tiny-llama: 38 of 60 minutes left`, as it is now."""
    name = f", {interview.name}" if with_name else ""
    return f"interview {interview.number}{name}: {clock_text(interview, time.time())}"


def _minutes(seconds: float) -> str:
    """`38 minutes`, or seconds where there are few."""
    count, unit = (int(seconds), "second") if seconds < 120 else (int(seconds // 60), "minute")
    return f"{count} {unit}" + ("" if count == 1 else "s")


def _interview(events: Sequence[Event]) -> Interview:
    """An interview of another version may lack what this one notes: it can be dropped."""
    first = events[0]
    known = read_details(first)
    return Interview(
        number=first.interview,
        slug=first.base,
        folder=str(known.get("folder", first.base.partition("/")[2])),
        place=str(known.get("place", "")),
        bugs=tuple(known.get("bugs", ())),
        minutes=int(known.get("minutes", 0)),
        seed=int(known.get("seed", 0)),
        started=first.at,
        events=tuple(events[1:]),
        tasks=tuple(RoundTask(kind=kind, id=name) for kind, name in known.get("tasks", ())),
    )


# ---------------------------------------------------------------- choosing


def seen_bugs(store: Progress, slug: str) -> set[str]:
    """The bugs of a program that a round had or a question told."""
    told = {e.bug for e in store.events() if e.base == slug and e.kind in ("quiz", "task")}
    return told.union(*(i.bugs for i in all_interviews(store) if i.slug == slug))


def choose_program(programs: Sequence[str], store: Progress, seed: int) -> str:
    """The program that was practised least, by slug; one of several is drawn."""
    begun = [interview.slug for interview in all_interviews(store)]
    fewest = min(begun.count(slug) for slug in programs)
    return random.Random(seed).choice([slug for slug in programs if begun.count(slug) == fewest])
