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
    note,
    progress,
    select_file,
    started_here,
)
from attnlab.commands.next import find_following
from attnlab.commands.watch.files import Files
from attnlab.commands.watch.keys import Keyboard

if TYPE_CHECKING:
    from attnlab.render.json import Document, Page
    from attnlab.render.screen import Screen

PLACE = 45
TICK = 0.1  # seconds between two looks at the files
CLOCK = 10.0  # seconds after which the clock of an interview is shown anew
ENDED = 130  # the exit code of a command that Ctrl-C ended
LATE = "no answer for 10 s: waiting for the judge; q or Ctrl-C ends it"
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
    except KeyboardInterrupt:  # between two looks, as q
        return watch.code
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
        self.asked = ""  # a key that was not yet obeyed, as it costs something
        self.footer = 0  # lines that it takes; 0 while a command prints
        self.told = 0.0  # when
        self._choose(what)

    def _choose(self, what: str) -> None:
        """Find out what is meant, from when on all is about that; raises `Refused` where nothing is
        there to be watched."""
        from attnlab.errors import Refused
        from attnlab.target.rounds import select_round

        what = what or _current(self.ctx)
        name, slug = what, ""
        if round_ := select_round(catalogue(self.ctx), what):
            slug = round_.program.slug
            if not round_.yours:
                hint = f"attnlab start {round_.program.name} writes its folder"
                raise Refused(f"there is no folder ./{round_.program.name} here", hint, what)
            paths = [Path(round_.folder, name) for name in round_.program.edit]
            look = ["grade", what]
        elif looks_like_path(what) and not _is_started(what):
            path = Path(what.partition(":")[0])
            if not path.is_file():
                raise Refused(f"{path}: no such file", NOTHING, what)
            paths = [path, path.parent]
            look = ["triage", what] if self.triage else ["trace", what, "--only-findings"]
        else:
            chosen = select_file(self.ctx, what)
            if not chosen.yours:
                hint = f"attnlab start {chosen.challenge.name} writes it"
                raise Refused(f"there is no ./{chosen.challenge.name}.py here", hint, what)
            name, slug, paths = chosen.challenge.name, chosen.challenge.slug, [chosen.path]
            # by its name: the line of the file that says what it is for may be gone with a save
            usual = chosen.path == Path(f"{name}.py")
            look = ["grade", name, *([] if usual else [what]), "--steps"]
        self.name, self.slug, self.own, self.paths, self.look = name, slug, not slug, paths, look
        self.files = Files(paths)
        self.place = ("", 0)  # where the editor opens
        self.head = ("", "")  # of the last grade: a long page has scrolled its verdict away

    def run(self) -> int:
        """Look at it now, and again after every save, until the user quits."""
        with self.keyboard.listen(lambda: self._say_keys() if self.footer else None):
            self._show(self.look)
            key = ""
            while key != "q":
                names = ", ".join(self.files.changed())
                key = "" if names else self.keyboard.wait(TICK)
                if names:
                    self._look_again(f"after a change of {names}")
                elif key:
                    self._press(key)
                elif self.footer and time.monotonic() > self.told + CLOCK and self._clock():
                    self._erase()
                    self._say_keys()
        return self.code

    def _look_again(self, why: str = "") -> None:
        missing = [path for path in self.paths if not path.exists()]
        if missing:
            self._tell(f"{missing[0]} is gone; waiting until it is back")
        else:
            self._show(self.look, why)

    def _press(self, key: str) -> None:
        asked, self.asked = self.asked, ""
        if key in ("\n", "\r", " "):
            self._look_again()
        elif key == "h" and asked != "h" and not self.own and self._clock():
            self.asked = key
            self._tell("a hint lowers the rating of the interview: press h again")
        elif key == "e":
            self._edit()
        elif key == "t":
            self._show(["trace", self.paths[0].as_posix() if not self.own else self.look[1]])
        elif key == "n" and not self.own:
            self._go_on(asked)
        elif not self.own and key in KEYS:
            words = {
                "h": ["hint", self.name],
                "r": ["run", self.look[1], "--reveal"],
                "l": ["list"],
            }
            self._show(words[key])

    def _go_on(self, asked: str) -> None:
        """Watch what the page of a challenge that passed names, once it is solved or given up."""
        with progress() as store:
            solved = store.challenge_progress(self.slug).status == "solved"
        following = None if self._clock() else find_following(self.ctx, self.slug).unit
        if following is None:
            self._show(["next"])
        elif not solved and asked != "n":
            self.asked = "n"
            self._tell(f"{self.name} is not solved yet: press n again to skip it")
        else:
            file = Path(following.name)
            if (
                file.is_dir()
                or file.with_suffix(".py").exists()
                or not self._show(["start", following.name])
            ):
                self._choose(following.name)
                self._show(["run", following.name])

    def _show(self, words: list[str], saved: str = "") -> int:
        """Run a command line of attnlab in this process, under a heading; returns its exit code."""
        from attnlab.render.json import on_page

        self.footer = 0
        if self.keyboard.works:
            self.screen.clear()
        at = time.strftime("%H:%M:%S")
        self.screen.say(
            (f"{at}  ", "aside"), f"attnlab {shlex.join(words)}", (f"  {saved}", "aside")
        )
        pages: list[Page] = []
        self.place = ("", 0) if words == self.look else self.place
        token = on_page.set(pages.append)
        try:
            with self.keyboard.attend(lambda: note(LATE)):
                code = self._call(words)
        except (KeyboardInterrupt, typer.Abort):
            code = ENDED
        finally:
            on_page.reset(token)
        if code == ENDED and "q" not in self.keyboard.pressed:
            self.screen.say((f"the {words[0]} was ended; Ctrl-C again or q leaves", "warn"))
        elif code != ENDED and words == self.look:
            self.code = code
            self._keep(pages)
        self._say_keys()
        return code

    def _keep(self, pages: list[Page]) -> None:
        """What the page of a look says to the footer, and to the editor."""
        from attnlab.render.grade import GradePage
        from attnlab.render.round import RoundGradePage

        if pages:
            self.place = first_place(pages[-1].document())
            if isinstance(pages[-1], GradePage | RoundGradePage):
                self.head = pages[-1].head(self.screen)
        elif not self.own:
            self.head = (f"{self.screen.marks.bad} not graded", "bad")

    def _call(self, words: list[str]) -> int:
        """The exit code of a command line; its error is shown, and the watch goes on."""
        from attnlab.errors import AttnlabError
        from attnlab.render.screen import show_error, stderr

        root = self.ctx.find_root()
        front = ["--catalogue", str(root.obj)] if root.obj else []
        try:
            code = root.command.main([*front, *words], prog_name="attnlab", standalone_mode=False)
            return int(code or 0)
        except AttnlabError as error:
            show_error(error, stderr())
            file, _, line = error.where.rpartition(":")
            self.place = (file, int(line)) if line.isdecimal() else self.place
            return error.exit_code

    def _clock(self) -> str:
        """What the clock of the interview says to which this belongs; "" where none does."""
        from attnlab.practice.interviews import clock_text, current

        with progress() as store:
            interview = current(store)
        mine = interview and (interview.tasks or interview.slug == self.slug)
        return clock_text(interview, time.time()) if interview and mine else ""

    def _tell(self, text: str) -> None:
        """Say a line above the keys."""
        self._erase()
        self.screen.say((text, "warn"))
        self._say_keys()

    def _erase(self) -> None:
        """Take the keys off the screen, to show them anew."""
        if self.footer:
            self.screen.file.write(f"\x1b[{self.footer}A\x1b[J")

    def _say_keys(self) -> None:
        if not self.keyboard.works:
            return
        keys = {"enter": "again"} | (OWN_KEYS if self.own else KEYS) | {"q": "quit"}
        clock, (head, style) = self._clock(), self.head
        with self.screen.capture() as shown:
            self.screen.gap()
            self.screen.say(
                (f"{head}  " if head else "", style),
                (f"watching {self.name}", "title"),
                (f"  {clock}" if clock else "", "warn"),
            )
            # whole on any screen: no key apart from its word
            self.screen.say(("  ".join(f"{key} {what}" for key, what in keys.items()), "aside"))
        self.screen.file.write(shown.get())
        self.screen.file.flush()
        self.footer, self.told = shown.get().count("\n"), time.monotonic()

    def _edit(self) -> None:
        """Open the user's editor at the first failure."""
        editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
        if not editor:
            self._tell("EDITOR is not set: export EDITOR=vim, for example")
            return
        file, line = self.place
        path = next((p for p in self.paths if p.name == Path(file).name), self.paths[0])
        words = [*shlex.split(editor), *([f"+{line}"] if line else []), str(path)]
        try:
            with self.keyboard.pause():
                subprocess.run(words, check=False)
        except OSError as error:
            self._tell(f"{editor} cannot be started: {error}")
        else:
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
    solved = {slug for slug, standing in standings.items() if standing.status == "solved"}
    open_ones = [file for file, slug in here.items() if slug not in solved]
    if not here:
        raise Refused(
            "nothing was started in this folder",
            f"{NOTHING}; attnlab watch FILE.py watches any file",
        )
    return max(open_ones or here, key=lambda file: Path(file).stat().st_mtime)


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
