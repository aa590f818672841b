"""`attnlab watch`: a loop that looks again on every save, with keys for what comes next."""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnlab.commands.base import (
    catalogue,
    complete_slug,
    looks_like_path,
    progress,
    select_file,
    started_here,
)
from attnlab.commands.watch.files import Files
from attnlab.commands.watch.keys import Keyboard

if TYPE_CHECKING:
    from attnlab.records import ChallengeProgress
    from attnlab.render.json import Document, Page
    from attnlab.render.screen import Screen

PLACE = 45
TICK = 0.1  # seconds between two looks at the files
NOTHING = "attnlab start NAME writes a file to fix; attnlab list shows the names"
KEYS = {"h": "hint", "t": "trace", "r": "reveal", "n": "next", "l": "list", "e": "edit"}
OWN_KEYS = {"t": "trace", "e": "edit"}  # of a file that is no challenge
What = Annotated[
    str,
    typer.Argument(
        metavar="[WHAT]",
        help="A started challenge or round, or any file; else the one under way here.",
        autocompletion=complete_slug,
    ),
]
WithTriage = Annotated[
    bool, typer.Option("--triage", help="Of a file of your own: triage it instead of tracing it.")
]


def command(ctx: typer.Context, what: What = "", triage: WithTriage = False) -> int:
    """Grade again on every save, until you quit.

    Shows the verdict, the first failure, and the steps around it. Keys: h hint, t trace,
    r reveal, n next challenge, l list, e open $EDITOR there, enter again, q quit. A file that is
    no challenge is traced.
    """
    watch = Watch(ctx, what, triage)
    try:
        return watch.run()
    except EOFError:  # the terminal has gone
        return 0


class Watch:
    """What is watched: the command that looks at it, and its files."""

    def __init__(self, ctx: typer.Context, what: str, triage: bool) -> None:
        from attnlab.render.screen import stdout

        self.ctx, self.triage = ctx, triage
        self.keyboard = Keyboard()
        self.screen: Screen = stdout()
        self.code = 0
        self.asked = False  # whether a key was not yet obeyed, as it costs something
        self.place: tuple[str, int] = ("", 0)  # where the editor opens
        self.outcome = ""  # of the last grade: a long page has scrolled its verdict away
        self._choose(what)

    def _choose(self, what: str) -> None:
        """Find out what is meant; raises `Refused` where nothing is there to be watched."""
        from attnlab.errors import Refused
        from attnlab.target.rounds import select_round

        what = what or _current(self.ctx)
        self.name, self.own = what, False
        if round_ := select_round(catalogue(self.ctx), what):
            if not round_.yours:
                hint = f"attnlab start {round_.program.name} writes its folder"
                raise Refused(f"there is no folder ./{round_.program.name} here", hint, what)
            self.paths = [Path(round_.folder, name) for name in round_.program.edit]
            self.look = ["grade", what]
        elif looks_like_path(what) and not _is_started(what):
            path = Path(what.partition(":")[0])
            if not path.is_file():
                raise Refused(f"{path}: no such file", NOTHING, what)
            self.own, self.paths = True, [path, path.parent]
            self.look = ["triage", what] if self.triage else ["trace", what, "--only-findings"]
        else:
            chosen = select_file(self.ctx, what)
            if not chosen.yours:
                hint = f"attnlab start {chosen.challenge.name} writes it"
                raise Refused(f"there is no ./{chosen.challenge.name}.py here", hint, what)
            self.name, self.paths = chosen.challenge.name, [chosen.path]
            # by its name: the line of the file that says what it is for may be gone with a save
            usual = chosen.path == Path(f"{self.name}.py")
            self.look = ["grade", self.name, *([] if usual else [what]), "--steps"]
        self.files = Files(self.paths)

    def run(self) -> int:
        """Look at it now, and again after every save, until the user quits."""
        self._show(self.look)
        key = ""
        while key != "q":
            with self.keyboard.listen():  # a command that runs finds the terminal as it was
                key = names = ""
                while not key and not names:
                    names = ", ".join(self.files.changed())
                    key = "" if names else self.keyboard.wait(TICK)
            if names:
                self._look_again(names)
            else:
                self._press(key)
        return self.code

    def _look_again(self, names: str) -> None:
        missing = [path for path in self.paths if not path.exists()]
        if missing:
            self.screen.say((f"{missing[0]} is gone; waiting until it is back", "warn"))
            return
        self._show(self.look, f"after a change of {names}")

    def _press(self, key: str) -> None:
        asked, self.asked = self.asked, False
        if key in ("\n", "\r", " "):
            self._show(self.look)
        elif key == "h" and not (asked or self.own) and self._costs():
            self.asked = True
            self.screen.say(("a hint lowers the rating of the interview: press h again", "warn"))
        elif key == "e":
            self._edit()
        elif key == "t":
            self._show(["trace", self.paths[0].as_posix() if not self.own else self.look[1]])
        elif not self.own and key in KEYS:
            words = {
                "h": ["hint", self.name],
                "r": ["run", self.look[1], "--reveal"],
                "l": ["list"],
                "n": ["next"],
            }
            self._show(words[key])
            if key == "n":
                self._choose("")

    def _show(self, words: list[str], saved: str = "") -> None:
        """Run a command line of attnlab in this process, under a heading."""
        if self.keyboard.works:
            self.screen.clear()
        at = time.strftime("%H:%M:%S")
        self.screen.say(
            (f"{at}  ", "aside"), f"attnlab {shlex.join(words)}", (f"  {saved}", "aside")
        )
        from attnlab.render.json import on_page

        pages: list[Page] = []
        token = on_page.set(pages.append)
        try:
            code = self._call(words)
        finally:
            on_page.reset(token)
        if words == self.look:
            self.code = code
            found = pages[-1].document() if pages else {}
            self.place, self.outcome = first_place(found), str(found.get("outcome", ""))
        self._say_keys()

    def _call(self, words: list[str]) -> int:
        """The exit code of a command line; its error is shown, and the watch goes on."""
        from attnlab.errors import AttnlabError
        from attnlab.render.screen import show_error, stderr

        root = self.ctx.find_root()
        front = ["--catalogue", str(root.obj)] if root.obj else []
        try:
            group = root.command
            return int(
                group.main([*front, *words], prog_name="attnlab", standalone_mode=False) or 0
            )
        except AttnlabError as error:
            show_error(error, stderr())
            return error.exit_code

    def _costs(self) -> bool:
        """Whether an interview is going on, so that a hint lowers its rating."""
        from attnlab.practice.interviews import current

        with progress() as store:
            return current(store) is not None

    def _say_keys(self) -> None:
        if self.keyboard.works:
            keys = OWN_KEYS if self.own else KEYS
            told = "  ".join(f"{key} {what}" for key, what in (*keys.items(), ("q", "quit")))
            self.screen.gap()
            mark, style = self.screen.look(self.outcome)
            graded = self.look[0] == "grade" and self.outcome
            verdict = f"{mark} {self.outcome}  " if graded else ""
            self.screen.say((verdict, style), (f"watching {self.name}", "title"))
            self.screen.say((told, "aside"))  # whole on any screen: no key apart from its word

    def _edit(self) -> None:
        """Open the user's editor at the first failure."""
        editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
        if not editor:
            self.screen.say(("EDITOR is not set: export EDITOR=vim, for example", "warn"))
            return
        file, line = self.place
        path = next((p for p in self.paths if p.name == Path(file).name), self.paths[0])
        words = [*shlex.split(editor), *([f"+{line}"] if line else []), str(path)]
        try:
            subprocess.run(words, check=False)
        except OSError as error:
            self.screen.say((f"{editor} cannot be started: {error}", "warn"))
        self._say_keys()


def _current(ctx: typer.Context) -> str:
    """What is under way: the round of a running interview, else what was saved last here."""
    from attnlab.catalogue.round_mark import MARK
    from attnlab.commands.rounds import interview_folder
    from attnlab.errors import Refused
    from attnlab.files import shown_path
    from attnlab.practice.interviews import current

    with progress() as store:
        interview = current(store)
        standings = store.all_progress()
    if interview and not interview.tasks:
        return shown_path(interview_folder(interview))
    found = catalogue(ctx)
    here = {f"{c.name}.py": c.slug for c in found.challenges if c.slug in started_here([c])}
    here |= {p.name: p.slug for p in found.programs if (Path(p.name) / MARK).is_file()}
    open_ones = [
        f for f, slug in here.items() if slug not in standings or not _solved(standings[slug])
    ]
    if not here:
        raise Refused(
            "nothing was started in this folder",
            f"{NOTHING}; attnlab watch FILE.py watches any file",
        )
    return max(open_ones or here, key=lambda file: Path(file).stat().st_mtime)


def _solved(standing: ChallengeProgress) -> bool:
    return standing.status == "solved"


def _is_started(file: str) -> bool:
    """Whether the first line of a file names the challenge that it is for."""
    from attnlab.errors import Unreadable
    from attnlab.target.source import marked_slug, read_source

    try:
        return file.endswith(".py") and marked_slug(read_source(Path(file)).text) is not None
    except Unreadable:
        return False


def first_place(document: Document) -> tuple[str, int]:
    """The file and line of the first failure that a page's document names; ("", 0) without one."""
    crash = document.get("crash") or {}
    failed = [c for c in document.get("checks") or () if c.get("outcome") == "failed"]
    causes = [*failed, *(document.get("suspicions") or ()), *(document.get("findings") or ())]
    for cause in (crash, *causes):
        if cause.get("line"):
            return str(cause.get("file") or ""), int(cause["line"])
    return "", 0
