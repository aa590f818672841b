from __future__ import annotations

import itertools
import sys
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from attnlab.commands.asking import ask_all, record_answer
from attnlab.commands.base import Json, catalogue, emit, note, parse_seed, progress, whole_number

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from attnlab.catalogue.load import Catalogue
    from attnlab.questions.base import Kind, Part, Runner
    from attnlab.records.practice import DueCard
    from attnlab.run_store import RunStore
    from attnlab.worker.client import Worker

PLACE = 68
LONG = ("tests", "explain", "lines")  # longer than two minutes, or ticked: if asked for
DUE = "due"  # of --about: what is due again, unsaid
NUMBERS = 10**6  # seeds that are drawn
LATELY = 12  # bases that were asked about, which others are drawn before
RUNS = 300  # traces and runs that are kept for later questions


def complete_kind(incomplete: str) -> list[tuple[str, str]]:
    try:
        from attnlab.questions.base import kinds

        return [(k.id, k.title) for k in kinds().values() if k.id.startswith(incomplete)]
    except Exception:  # completion must never print an error
        return []


KindName = Annotated[
    str,
    typer.Argument(
        metavar="[KIND]",
        help="effect, explain, incident, lines, numbers, shapes, spot, tests or why; any short one."
        " An id such as shapes.17.2 shows that question.",
        autocompletion=complete_kind,
    ),
]
Seed = Annotated[str, typer.Option("--seed", metavar="N", help="Ask this question of the kind.")]
Answer = Annotated[
    str | None, typer.Option("--answer", metavar="ID=ANSWER", help="Judge an answer to a question.")
]
Ask = Annotated[
    str | None, typer.Option("--ask", metavar="ID=N", help="Make a measurement of an incident.")
]
About = Annotated[
    str,
    typer.Option(
        "--about", metavar="CATEGORY", help="Only bugs of one kind, such as mask, or `due`."
    ),
]
Count = Annotated[str, typer.Option("--count", metavar="N", help="End after N questions.")]


def command(
    ctx: typer.Context,
    kind: KindName = "",
    seed: Seed = "",
    answer: Answer = None,
    ask: Ask = None,
    about: About = "",
    count: Count = "",
    json: Json = False,
) -> int:
    """Ask what an interviewer asks: shapes, bugs, numbers, reasons.

    Questions are drawn from the challenges; answers are compared with what the code really does.
    Without a terminal one question is shown, and --answer judges.
    """
    import random

    from attnlab.errors import Refused
    from attnlab.questions.base import kinds
    from attnlab.render.quiz import KindsPage, QuestionPage

    given = answer if ask is None else ask
    both = None not in (answer, ask)
    if given is not None and (kind or seed or count or about or both):
        flag = "--ask" if answer is None else "--answer"
        raise Refused(f"{flag} names a question by its id alone", "leave out the rest", flag)
    number = parse_seed(seed)
    most = whole_number("--count", count, 1, 1000) if count else 0
    asks = sys.stdin.isatty() and not json
    if given is None and not (kind or asks or about or seed or count):
        return emit(KindsPage(kinds={k.id: k.title for k in kinds().values()}), json)
    with warm_runner() as runner:
        if given is not None:
            return _judge(ctx, given, runner, json, measure=answer is None)
        if "." in kind:
            parts, number = _find_parts(ctx, kind, runner)
            if asks and number == 1:
                return ask_all(iter([parts]), kind.partition(".")[0], 1)
            return emit(QuestionPage(question=parts[number - 1].question), json)
        first = random.randrange(NUMBERS) if number is None else number
        lately, apart = _asked_lately() if number is None else (deque[str](maxlen=0), set[str]())
        due = _due_cards(ctx, kind) if about == DUE else []
        drawn = (
            _draw_due(ctx, due, first, runner, lately, apart)
            if due
            else _draw(ctx, kind, about, first, runner, lately, apart)
        )
        if not asks:
            if most > 1 and not json:
                note("one question is shown, as there is no terminal to ask more at")
            return emit(QuestionPage(question=next(drawn)[0].question), json)
        most = min(most or len(due), len(due)) if due else most or int(bool(seed))
        return ask_all(itertools.islice(drawn, most or None), kind, most)


def _asked_lately() -> tuple[deque[str], set[str]]:
    """Of what the last questions were made, and the program of an interview that is going on, which
    no question is to tell."""
    with progress() as store:
        events = store.events()
    asked = [event.base for event in events if event.kind == "quiz" and event.base]
    over = {event.interview for event in events if event.kind in ("end", "abandon")}
    going_on = {event.base for event in events if event.interview not in (0, *over)}
    return deque(asked, maxlen=LATELY), going_on


def _catalogue(ctx: typer.Context, kind: Kind) -> Catalogue | None:
    """What the kind draws from; one that draws from nothing does not wait for it."""
    return catalogue(ctx) if kind.material else None


def _draw(
    ctx: typer.Context,
    kind: str,
    about: str,
    first: int,
    runner: Runner,
    lately: deque[str],
    apart: Collection[str],
) -> Iterator[Sequence[Part]]:
    """Questions of a kind, or of all short ones in turn."""
    from attnlab.questions.base import draw_about, find_kind, kind_names

    names = [kind] if kind else [name for name in kind_names() if name not in LONG]
    all_kinds = [find_kind(name) for name in names]
    fitting = [each for each in all_kinds if about in ("", *each.categories)] or all_kinds
    asked = {*apart}  # and in this sitting
    for seed in itertools.count(first):
        drawn = fitting[seed % len(fitting)]
        known = {*lately, *asked}
        parts = draw_about(about, drawn, seed, _catalogue(ctx, drawn), runner, known)
        lately.append(parts[0].base)
        asked.add(parts[0].name)
        yield parts


def _due_cards(ctx: typer.Context, kind: str) -> list[DueCard]:
    """What is due of a kind, or of all; raises `Refused` where nothing is."""
    from attnlab.commands.review import due_now
    from attnlab.commands.stats import answers
    from attnlab.errors import Refused
    from attnlab.questions.base import find_kind, kind_names

    asked = [find_kind(kind).id] if kind else kind_names()
    due = [card for card in due_now(answers(ctx)) if card.kind in asked]
    if not due:
        hint = f"attnlab quiz {kind}".strip() + " asks anything"
        raise Refused(f"no {kind} question is due".replace("  ", " "), hint, f"--about {DUE}")
    return due


def _draw_due(
    ctx: typer.Context,
    due: Sequence[DueCard],
    first: int,
    runner: Runner,
    lately: deque[str],
    apart: Collection[str],
) -> Iterator[Sequence[Part]]:
    """A question for each card."""
    from attnlab.questions.base import draw_about, find_kind

    for seed, card in enumerate(due, first):
        found = find_kind(card.kind)
        known = {*lately, *apart}
        parts = draw_about(card.category, found, seed, _catalogue(ctx, found), runner, known)
        lately.append(parts[0].base)
        yield parts


def _judge(ctx: typer.Context, answer: str, runner: Runner, json: bool, measure: bool) -> int:
    """The verdict on `ID=ANSWER`, or what was measured."""
    from attnlab.errors import Refused
    from attnlab.questions.base import find_measurement, judge
    from attnlab.render.quiz import MeasurementPage, QuizVerdictPage

    name, equals, typed = answer.partition("=")
    if not equals:
        raise Refused(f'there is no = in "{answer}"', "as in --answer shapes.17=ANSWER")
    parts, number = _find_parts(ctx, name.strip(), runner)
    part = parts[number - 1]
    if measure:
        return emit(MeasurementPage(measurement=find_measurement(part, typed)), json)
    verdict = judge(parts, number, typed)
    record_answer(part, verdict)
    return emit(QuizVerdictPage(verdict=verdict), json, int(verdict.outcome != "right"))


def _find_parts(ctx: typer.Context, name: str, runner: Runner) -> tuple[Sequence[Part], int]:
    """The parts of the question with this id, and which of them it names, from 1."""
    from attnlab.errors import Refused
    from attnlab.questions.base import draw_parts, read_id

    asked = read_id(name)
    parts = draw_parts(asked.kind, asked.seed, _catalogue(ctx, asked.kind), runner)
    if asked.number > len(parts):
        raise Refused(f"{name} is not asked: that question ends with part {len(parts)}")
    return parts, asked.number


@contextmanager
def warm_runner() -> Iterator[Runner]:
    """Runs what questions need; the worker starts with the first job."""
    from contextlib import ExitStack
    from functools import cache

    from attnlab.questions.base import Runner

    with ExitStack() as stack:

        @cache
        def worker() -> Worker:
            from attnlab.doctor import isolated_worker

            return stack.enter_context(isolated_worker(note))

        yield Runner(
            lambda job: worker().run_job(job),
            lambda job: worker().run_program(job),
            _kept_runs(),
            shipped=True,
        )


def _kept_runs() -> RunStore | None:
    """What was run for questions before; None where nothing can be kept."""
    from attnlab.errors import AttnlabError
    from attnlab.run_store import RunStore

    with progress() as store:
        folder = store.path and store.path.parent
    try:
        return RunStore(folder / "runs.db", most=RUNS) if folder else None
    except AttnlabError:
        return None
