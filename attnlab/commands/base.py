"""What the commands share: their options, the file that is meant, how they end.

A command is one module in this folder. Its file name is its name; it defines

* `PLACE`    where it stands in `attnlab --help`: lower numbers first;
* `command`  the function: its signature is the command line, its docstring the help text. It
  turns the arguments into one call, shows the page that comes of it with `emit`, and returns the
  exit code; or `COMMANDS`, several of them by name, under the docstring of the module.

What a command needs is imported inside its function, so that help and completion stay instant.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import typer

if TYPE_CHECKING:
    from attnlab.catalogue.load import Catalogue
    from attnlab.catalogue.program_entries import ProgramEntry
    from attnlab.progress import Progress
    from attnlab.records import Challenge, Code, Job, Limits, Report
    from attnlab.records.practice import Interview
    from attnlab.records.program import ProgramJob, ProgramReport
    from attnlab.render.json import Page
    from attnlab.target.rounds import SelectedRound


NOT_COMPARED = 3  # the exit code where nothing could be looked at
SEEDS = 2**63 - 1  # the largest that torch takes


def complete_slug(incomplete: str) -> list[tuple[str, str]]:
    """The challenges that begin with this word; full slugs once it holds a slash."""
    from attnlab.catalogue.load import load

    try:
        loaded = load()
        found: tuple[Challenge | ProgramEntry, ...] = (*loaded.challenges, *loaded.programs)
    except Exception:  # completion must never print an error
        return []
    names = [(c.slug if "/" in incomplete else c.name, c.title) for c in found]
    return [(name, title) for name, title in names if name.startswith(incomplete)]


Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead.")]
Name = Annotated[
    str,
    typer.Argument(metavar="NAME", help="A challenge or program.", autocompletion=complete_slug),
]
NameOrFile = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="A challenge or program, or a file that attnlab start wrote.",
        autocompletion=complete_slug,
    ),
]
Timeout = Annotated[
    str, typer.Option("--timeout", metavar="SECONDS", help="Time limit of the file.")
]
Memory = Annotated[
    str, typer.Option("--memory", metavar="SIZE", help="Memory limit of the file: 512M, 2G.")
]
Force = Annotated[
    bool, typer.Option("--force", help="Replace the file; the old one is kept as FILE.1.")
]


# ---------------------------------------------------------------- arguments


class Selection(NamedTuple):
    """The challenge and file that a command works on, and the file's name in messages."""

    challenge: Challenge
    path: Path
    file: str  # as results name it
    yours: bool  # else the shipped one

    @property
    def label(self) -> str:
        """A short name of the file."""
        return self.file if self.yours else f"{self.path.name} as shipped"


def catalogue(ctx: typer.Context, anew: bool = False) -> Catalogue:
    from attnlab.catalogue.load import load

    kept: dict[str, Catalogue] = ctx.find_root().meta
    if anew or "catalogue" not in kept:
        kept["catalogue"] = load(ctx.obj)
    return kept["catalogue"]


def select_file(ctx: typer.Context, what: str, file: str | None = None) -> Selection:
    """The challenge and file that NAME and FILE of the command line name, in either order.

    Raises `Refused` or `Unreadable` where NAME is a file that belongs to no challenge.
    """
    from attnlab.errors import Refused

    if file and looks_like_path(what) and names_challenge(ctx, file):
        what, file = file, what
    if file == "":
        raise Refused("the name of the file is empty", "is a variable of the shell not set?")
    if file:
        return Selection(catalogue(ctx).find(what), Path(file), file, yours=True)
    if looks_like_path(what):
        return Selection(catalogue(ctx).find(_slug_in(ctx, what)), Path(what), what, yours=True)
    challenge = catalogue(ctx).find(what)
    here = Path(f"{challenge.name}.py")
    if os.path.lexists(here) and _may_belong_to(here, challenge.slug):
        return Selection(challenge, here, f"./{here}", yours=True)
    path = Path(challenge.file)
    return Selection(challenge, path, f"{challenge.slug}/{path.name}", yours=False)


def started_here(challenges: Iterable[Challenge]) -> frozenset[str]:
    """The slugs of the challenges whose started file lies in this folder."""
    names = {challenge.name: challenge.slug for challenge in challenges}
    files = (Path(f"{name}.py") for name in names)
    return frozenset(
        names[f.stem] for f in files if os.path.lexists(f) and _may_belong_to(f, names[f.stem])
    )


def looks_like_path(what: str) -> bool:
    names_file = what.endswith((".py", ".ipynb")) or what.startswith((".", "/", "~"))
    return names_file or os.sep != "/" in what


def names_challenge(ctx: typer.Context, word: str) -> bool:
    """Whether a challenge of one file has this name or slug."""
    return any(word in (c.slug, c.name) for c in catalogue(ctx).challenges)


def _slug_in(ctx: typer.Context, file: str) -> str:
    """The slug in the first line of a started file."""
    from attnlab.errors import Refused, Unreadable
    from attnlab.target.source import marked_slug, read_source

    name = Path(file).stem
    if not os.path.lexists(file) and names_challenge(ctx, name):
        hint = f"type {ctx.command_path} {name}; attnlab start {name} writes ./{name}.py"
        raise Unreadable(f"{file}: no such file", hint, file)
    slug = marked_slug(read_source(Path(file)).text)
    if slug is None:
        grades = ctx.info_name == "grade"
        raise Refused(
            f"{file} does not say which challenge it is for",
            f"type {ctx.command_path} NAME{f' {file}' if grades else ''}; attnlab list shows the "
            f"names; `attnlab trace {file}` is for code of your own",
            file,
        )
    return slug


def _may_belong_to(file: Path, slug: str) -> bool:
    """False when the file's first line names another challenge of the same name."""
    from attnlab.errors import Unreadable
    from attnlab.target.source import marked_slug, read_source

    try:
        return marked_slug(read_source(file).text) in (None, slug)
    except Unreadable:
        return True  # reading it again will raise what is wrong with it


def challenge_job_for(chosen: Selection, bounds: Limits, *stages: Literal["trace", "check"]) -> Job:
    """The job that runs the chosen file, under its name in messages."""
    from attnlab.target.challenge_job import challenge_job

    return challenge_job(chosen.challenge, selected_code(chosen), stages=stages, limits=bounds)


def selected_code(chosen: Selection) -> Code:
    """The chosen file, under its name in messages."""
    from attnlab.catalogue.texts import shipped_code
    from attnlab.target.source import read_source

    if not chosen.yours:
        return shipped_code(chosen.challenge)
    return read_source(chosen.path, chosen.file.removeprefix("./"))


def announce(doing: str, chosen: Selection) -> None:
    """Print which file is used: the user's own or the shipped one."""
    note(f"{doing} {chosen.label}" + (" (your file)" if chosen.yours else ""))


def limits(timeout: str, memory: str, flag: str = "--memory", usual: float | None = None) -> Limits:
    """`--timeout` and `--memory`, or the defaults; `usual` is another default of seconds."""
    from attnlab.errors import Refused
    from attnlab.records import Limits

    found = Limits(seconds=usual) if usual else Limits()
    seconds = _number(timeout) if timeout else found.seconds
    if not 0 < seconds <= 3600:
        raise Refused(f"--timeout {timeout}: a number of seconds up to 3600 is needed", "as in 2.5")
    units = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
    unit = units.get(memory[-1:].lower(), 0)
    size = _number(memory[:-1]) * unit if memory else found.memory
    if not 1 << 20 <= size <= 1 << 40:
        raise Refused(f"{flag} {memory}: a size from 1M to 1024G is needed", "as in 512M or 2G")
    return Limits(seconds=seconds, memory=int(size))


def parse_seed(text: str) -> int | None:
    """The number of `--seed`, None where it is not given; raises `Refused` where it is none."""
    return whole_number("--seed", text, 0, SEEDS, "as in 7") if text else None


def whole_number(flag: str, text: str, least: int, most: int, hint: str = "") -> int:
    """The value of a flag; raises `Refused` where it is no number between these."""
    from attnlab.errors import Refused

    if text.isascii() and text.isdecimal() and least <= int(text[:20]) <= most:
        return int(text)
    message = f"{flag} {text}: a whole number from {least} to {most} is needed"
    raise Refused(message, hint, flag)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return -1.0


def note_reveal(chosen: Selection, found: object, reveal: bool) -> bool:
    """Remember that what was found in a puzzle was shown. Returns whether it is solved."""
    with progress() as store:
        if reveal and found:
            store.mark_revealed(chosen.challenge.slug)
        return store.challenge_progress(chosen.challenge.slug).status == "solved"


# ---------------------------------------------------------------- running and output


def run_job(job: Job) -> Report:
    """The report of one job; raises its error where the job could not run."""
    from attnlab.doctor import isolated_worker
    from attnlab.errors import Broken, Refused, Unreadable

    kinds = {"refused": Refused, "unreadable": Unreadable, "error": Broken}
    with isolated_worker(note, own=job.own is not None) as worker:
        report = worker.run_job(job)
    if report.outcome in kinds:
        raise kinds[report.outcome](report.message, report.hint)
    return report


def run_program(job: ProgramJob) -> ProgramReport:
    """The report on a program; raises where attnlab itself failed. A line on stderr says that it
    is at work."""
    from attnlab.doctor import isolated_worker
    from attnlab.errors import Broken
    from attnlab.render.screen import stderr

    screen = stderr()
    # Frames of a spinner would fill a log, and they are escape codes.
    watched = sys.stderr.isatty() and not screen.no_color
    waiting = screen.status("training and comparing ...") if watched else nullcontext()
    with isolated_worker(note) as worker, waiting:
        report = worker.run_program(job)
    if report.outcome == "error":
        raise Broken(report.message, report.hint)
    return report


@contextmanager
def progress() -> Iterator[Progress]:
    from attnlab.progress import Progress

    with Progress.open() as found:
        yield found
        if found.warning:
            warn(found.warning)


def emit(page: Page, json: bool, code: int = 0) -> int:
    """Print the page or its JSON document; returns `code`."""
    from attnlab.render.json import on_page, write_document

    on_page.get()(page)
    if json:
        write_document(page.document())
    else:
        from attnlab.render.screen import stdout

        page.show(stdout())
    return code


def running_interview(store: Progress, program: str) -> Interview | None:
    """The interview that is going on, if it is about this program; its clock is shown."""
    from attnlab.practice.interviews import current

    found = current(store)
    if found is None or found.slug != program:
        return None
    show_clock(found)
    return found


def join_interview(
    store: Progress, chosen: SelectedRound
) -> tuple[SelectedRound, Interview | None]:
    """The round with the bugs of the interview that is going on, whatever its mark says; as it is
    where none is about it."""
    from dataclasses import replace

    from attnlab.catalogue.round_mark import MARK
    from attnlab.practice.stages import open_stage
    from attnlab.target.rounds import with_stage

    interview = running_interview(store, chosen.program.slug) if chosen.yours else None
    known = chosen.program.patches.keys()  # one of another version may have none of them
    if interview is None or not interview.bugs or not set(interview.bugs) <= known:
        return chosen, None
    notes = tuple(note for note in chosen.notes if MARK not in note)
    chosen = replace(chosen, bugs=interview.bugs, notes=notes)
    return with_stage(chosen, open_stage(interview.events)), interview


def show_clock(interview: Interview) -> None:
    """Print the time that is left, on stderr."""
    from attnlab.practice.interviews import describe_clock

    note(describe_clock(interview))


def refuse_answers(store: Progress, program: str, asked: str) -> None:
    """Raise `Refused` where an interview about the program is going on."""
    from attnlab.errors import Refused

    if running_interview(store, program):
        raise Refused(
            f"{asked} would end the interview that is going on",
            "attnlab interview end shows the scorecard and every bug; abandon drops it",
        )


def note(text: str) -> None:
    """Print a line of progress on stderr."""
    from attnlab.render.screen import stderr

    stderr().message(text)


def warn(text: str) -> None:
    from attnlab.render.screen import stderr

    stderr().message(("warning: ", "warn"), text)
