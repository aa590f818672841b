"""Questions at a terminal: ask, read what is typed, judge it, record it."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

import typer

from attnlab.commands.base import note, progress
from attnlab.errors import AttnlabError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from attnlab.questions.base import Part
    from attnlab.records.quiz import Measurement, QuizVerdict

ROOM = 6  # cells of a line for what is typed


def ask_all(drawn: Iterator[Sequence[Part]], kind: str, most: int) -> int:
    """Ask one question after the other, of so many if not 0, until the person leaves."""
    from attnlab.render.quiz import show_session
    from attnlab.render.screen import stdout

    verdicts: list[QuizVerdict] = []
    with suppress(typer.Abort, KeyboardInterrupt):
        for number, parts in enumerate(drawn, 1):
            if number > 1:
                stdout().gap()
            _ask(parts, verdicts, f"{number} of {most}" if most > 1 else "")
    show_session(verdicts, kind, stdout())
    return 0


def _ask(parts: Sequence[Part], verdicts: list[QuizVerdict], place: str) -> None:
    """One question and what follows it; each answer is recorded at once."""
    from attnlab.render.quiz import show_question, show_verdict
    from attnlab.render.screen import stdout

    for number, part in enumerate(parts, 1):
        show_question(part.question, stdout(), again=number > 1, place=place)
        looked: list[Measurement] = []
        verdict = ask_part(parts, number, keep=looked.append)
        record_answer(part, verdict)
        verdicts.append(verdict)
        seen = verdict.right in [found.value for found in looked]
        show_verdict(verdict, stdout(), seen=seen)
        if part.show and type_yes("run it?"):
            stdout().say(part.show())


def ask_part(
    parts: Sequence[Part],
    number: int,
    measured: int = 0,
    keep: Callable[[Measurement], object] = lambda _: None,
    more: str = "? explains",
) -> QuizVerdict:
    """The verdict on what is typed, asked for until it can be understood. So many measurements were
    made before; `keep` is told of each further one; `more` is what may be typed besides."""
    from attnlab.questions.base import find_kind, find_measurement, judge
    from attnlab.render.quiz import show_measurement
    from attnlab.render.screen import stdout

    part, begun = parts[number - 1], time.monotonic()
    while True:
        typed = type_line(f"{_expected(part, measured)}, {more}")
        try:
            if typed == "?":
                stdout().prose(find_kind(part.question.kind).text, indent=2)
            elif part.evidence and typed.isdecimal():
                found = find_measurement(part, typed, measured)
                show_measurement(found, stdout())
                keep(found)
                measured += 1
            else:
                if typed and part.waits:
                    note(part.waits)
                return judge(parts, number, typed, time.monotonic() - begun, measured)
        except AttnlabError as error:
            tell(error)


def _expected(part: Part, measured: int) -> str:
    """What may be typed."""
    from attnlab.records.quiz import BUDGET, COST

    if part.evidence and not part.question.expects and measured < BUDGET:
        return f"a number ({BUDGET - measured} left, each costs {COST:g}) or a letter"
    return part.question.expects or "a letter"


def tell(error: AttnlabError) -> None:
    """Why what was typed is no answer."""
    from attnlab.render.screen import stderr

    stderr().say(error.message + (f": {error.hint}" if error.hint else ""))


def type_line(text: str) -> str:
    """A line that was typed, after a prompt that is wrapped at words; raises `Abort` for q, Ctrl-C
    and a terminal that was closed."""
    from textwrap import wrap

    from attnlab.render.screen import stdout

    *head, last = wrap(f"{text} (q leaves)", max(stdout().width - ROOM, 20))
    for line in head:
        stdout().say(line)
    try:
        typed = str(typer.prompt(last, default="", show_default=False)).strip()
    except (typer.Abort, KeyboardInterrupt, EOFError):
        stdout().gap()  # the prompt stands there
        raise typer.Abort from None
    if typed.lower() == "q":
        raise typer.Abort
    return typed


def type_yes(text: str) -> bool:
    """Whether the answer is yes, asked for until it is yes or no; raises `Abort` for q."""
    while True:
        typed = type_line(f"{text} [y/n]").lower()
        if typed in ("y", "yes", "n", "no"):
            return typed[0] == "y"
        note("type y or n")


def record_answer(part: Part, verdict: QuizVerdict) -> None:
    """Keep what was answered, once it was."""
    from attnlab.records.practice import Event

    with progress() as store:
        store.add_event(
            Event(
                kind="quiz",
                base=part.base,
                bug=part.bug,
                category=part.category,
                question=verdict.kind,
                outcome=verdict.outcome,
                seconds=verdict.seconds,
                text=verdict.id,
            )
        )
