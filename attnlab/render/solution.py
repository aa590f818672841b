"""A solution: what changed against the shipped file, and why."""

from __future__ import annotations

from difflib import unified_diff

from rich.text import Text

from attnlab.records import Challenge, record
from attnlab.render.challenge import show_head
from attnlab.render.json import Document
from attnlab.render.screen import Screen


@record
class SolutionPage:
    challenge: Challenge
    shipped: str  # the texts of the two files, and of the notes
    solution: str
    notes: str
    solved: bool = False

    def show(self, screen: Screen) -> None:
        show_head(self.challenge, screen)
        screen.gap()
        if self.challenge.kind == "implement":
            from attnlab.render.code import highlight_python  # loads pygments

            screen.print(highlight_python(self.solution), soft_wrap=True)
        else:
            _show_diff(_diff(self), screen)
        screen.prose(self.notes)
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
        }


def _diff(page: SolutionPage) -> list[str]:
    old, new = page.shipped.splitlines(), page.solution.splitlines()
    names = (page.challenge.file.replace("\\", "/").rpartition("/")[2], "solution.py")
    return list(unified_diff(old, new, *names, lineterm="", n=4))


def _show_diff(lines: list[str], screen: Screen) -> None:
    """Whole lines in red and green; the minus and the plus say the same without colour."""
    for line in lines:
        style = {"-": "red", "+": "green", "@": "cyan"}.get(line[:1], "")
        style = "bold" if line.startswith(("---", "+++")) else style
        screen.print(Text(line, style=style), soft_wrap=True)
