"""The pages about one challenge: its head, a file to start with, the hints, a solution."""

from collections.abc import Sequence
from difflib import unified_diff

from rich.text import Text

from attnlab.records import Challenge, record
from attnlab.render.explain import Evidence
from attnlab.render.json import Document
from attnlab.render.screen import Screen, level_marks


def show_head(challenge: Challenge, screen: Screen, file: str = "") -> None:
    """Slug and title, and below them what kind it is, how hard, and which file is meant."""
    screen.say((challenge.title, "title"))
    words = f"{challenge.kind}  level {level_marks(screen.marks, challenge.level)}"
    screen.say((challenge.slug, "name"), f"  {words}", f"  {file}" if file else "")


@record
class StartPage:
    """A file that was written for the user: where it is and what to do with it."""

    challenge: Challenge
    file: str
    kept: str = ""  # where the file that stood there before is kept

    def show(self, screen: Screen) -> None:
        show_head(self.challenge, screen)
        screen.gap()
        screen.say((f"{screen.marks.ok} ", "ok"), "wrote ", (self.file, "title"))
        if self.kept:
            screen.say("  the old file is kept as ", (self.kept, "title"))
        name = self.challenge.name
        screen.do_next(f"attnlab run {name} shows every step; edit it, then attnlab grade {name}")

    def document(self) -> Document:
        return {"challenge": self.challenge.slug, "file": self.file, "kept": self.kept}


def show_hints(hints: Sequence[tuple[str, str]], more: bool, screen: Screen) -> None:
    """Hints as (heading, text); all but the last had been shown before, and it too without more."""
    for number, (heading, text) in enumerate(hints, 1):
        new = more and number == len(hints)
        screen.gap()
        screen.say((heading, "title" if new else ""), ("" if new else "  shown before", "aside"))
        screen.prose(text, indent=2)


@record
class HintPage:
    """The hints taken so far, the newest last."""

    challenge: Challenge
    taken: int
    more: bool = True  # False: all hints had been shown before
    solved: bool = False
    typed: str = ""  # what was typed for it, where that is a file

    def show(self, screen: Screen) -> None:
        total = len(self.challenge.hints)
        screen.say((self.challenge.title, "title"), (f"  {self.challenge.slug}", "name"))
        hints = enumerate(self.challenge.hints[: self.taken], 1)
        show_hints([(f"hint {n} of {total}", text) for n, text in hints], self.more, screen)
        name = self.challenge.name
        typed = self.typed or name
        if not self.more:
            screen.gap()
            screen.say((f"There is no further hint: these are all {total}.", "warn"))
        if self.solved:
            screen.do_next(f"it is solved already; attnlab explain {name} shows the notes")
            return
        last = ""
        if self.taken == total:
            line = f"attnlab grade {typed} --reveal names the line of your file that differs"
            last = f"; {line}; if all else fails, attnlab solution {name}"
        screen.do_next(f"fix it, then attnlab grade {typed}{last}")

    def document(self) -> Document:
        return {
            "challenge": self.challenge.slug,
            "hints": list(self.challenge.hints[: self.taken]),
            "taken": self.taken,
            "total": len(self.challenge.hints),
        }


@record
class SolutionPage:
    """A solution: what changed against the shipped file, and why."""

    challenge: Challenge
    shipped: str  # the texts of the two files, and of the notes
    solution: str
    notes: str
    evidence: Evidence | None = None
    solved: bool = False

    def show(self, screen: Screen) -> None:
        show_head(self.challenge, screen)
        screen.gap()
        if self.challenge.kind in ("implement", "port"):
            from attnlab.render.code import highlight_python  # loads pygments

            screen.print(highlight_python(self.solution), soft_wrap=True)
        else:
            _show_diff(_diff(self), screen)
        screen.gap()
        screen.prose(self.notes)
        if self.evidence:
            self.evidence.show(screen)
        if self.solved:
            screen.do_next("attnlab list shows what is left")
        else:
            screen.do_next(f"make the change yourself, then attnlab grade {self.challenge.name}")

    def document(self) -> Document:
        return {
            "challenge": self.challenge.slug,
            "solution": self.solution,
            "diff": "\n".join(_diff(self)),
            "notes": self.notes,
            **(self.evidence.document() if self.evidence else {}),
        }


def _diff(page: SolutionPage) -> list[str]:
    old, new = page.shipped.splitlines(), page.solution.splitlines()
    return list(unified_diff(old, new, "as shipped", "solution", lineterm="", n=4))


def _show_diff(lines: list[str], screen: Screen) -> None:
    """Whole lines in red and green; the minus and the plus say the same without colour."""
    for line in lines:
        style = {"-": "red", "+": "green", "@": "cyan"}.get(line[:1], "")
        style = "bold" if line.startswith(("---", "+++")) else style
        screen.print(Text(line, style=style), soft_wrap=True)
