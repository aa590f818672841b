"""The screen: a rich console with our styles, and the few pieces that every page is made of.

Colours are the eight plain ANSI ones that read on dark and on light backgrounds, so no yellow and
no white; and no colour says anything that a mark or a word does not say too.
"""

from __future__ import annotations

import io
import os
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from rich.cells import cell_len, set_cell_size
from rich.console import Console, OverflowMethod
from rich.padding import Padding
from rich.text import Text
from rich.theme import Theme

from attnlab.errors import AttnlabError
from attnlab.records import record
from attnlab.render.plain_prose import plain_prose
from attnlab.render.streams import discard_output

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence

    from rich.table import Table

READABLE = 120  # cells; a longer line of prose is lost on the way back to the margin
# All but the line break and the tab; also what turns the direction of writing.
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

COMMAND = re.compile(r"(?<![\w-])attnlab(?= [a-z-])")
WORD = re.compile(r""" ('[^']*'|(?:"[^"]*"|\S)+)""")
OF_ARGUMENT = re.compile(r"[^a-z;,.:)]|[.:][a-z]")  # what no word of a sentence has
PLAIN_WORDS = 1  # after the name of a command: the name of something
JOINED = "\ue000"  # a space that is no place to break a line

STYLES = {
    "title": "bold",
    "ok": "green",
    "bad": "bold red",
    "warn": "bold magenta",
    "name": "cyan",
    "aside": "dim",
    "next": "bold",
    "markdown.code": "cyan",
    "markdown.h1": "bold",
    "markdown.h2": "bold",
    "markdown.h3": "bold",
    "markdown.item.bullet": "default",
    "markdown.item.number": "default",
}


@record
class Marks:
    """The symbols of a page. A terminal that is not UTF-8 gets ASCII."""

    ok: str = "✓"
    bad: str = "✗"
    skip: str = "–"  # noqa: RUF001
    unsure: str = "?"
    warn: str = "!"
    note: str = "·"
    full: str = "●"
    empty: str = "○"
    times: str = "×"  # noqa: RUF001
    dots: str = "…"


ASCII = Marks(ok="+", bad="x", skip="-", note="-", full="*", empty=".", times="x", dots="..")


class Screen(Console):
    """A console that goes quiet, and lets the command finish, when its reader has gone."""

    def __init__(
        self,
        *,
        stderr: bool = False,
        file: IO[str] | None = None,
        width: int | None = None,
        record: bool = False,
        color: bool | None = None,
        many: bool = False,  # all colours there are, whatever the terminal has
    ) -> None:
        colors: Literal["auto", "truecolor"] | None = "truecolor" if many else "auto"
        if os.environ.get("NO_COLOR"):  # rich would still write bold
            colors = None
        super().__init__(
            stderr=stderr,
            file=file,
            width=width,
            record=record,
            force_terminal=color,
            force_jupyter=False,  # else rich would print to the notebook by itself
            color_system=colors,
            theme=Theme(STYLES),
            highlight=False,
            markup=False,
            emoji=False,
        )

    @property
    def marks(self) -> Marks:
        return Marks() if self.encoding.lower().startswith("utf") else ASCII

    def look(self, outcome: str) -> tuple[str, str]:
        """The mark and the style of an outcome; one of no other kind cannot be told."""
        marks = self.marks
        known = {
            "passed": (marks.ok, "ok"),
            "failed": (marks.bad, "bad"),
            "skipped": (marks.skip, "aside"),
        }
        return known.get(outcome, (marks.unsure, "warn"))

    def verdict(self, passed: bool, word: str) -> tuple[str, str]:
        """The word of a grade behind its mark, and the style of both."""
        mark, style = (self.marks.ok, "bold green") if passed else (self.marks.bad, "bad")
        return f"{mark} {word}", style

    def link(self, style: str, file: str) -> str:
        """`style`, with a link to the file where it is there and the terminal opens such."""
        path = Path(file)
        if not (self.is_terminal and self.color_system and opens_links(os.environ)):
            return style
        with suppress(OSError, ValueError):
            if path.is_file():
                return f"{style} link {path.absolute().as_uri()}".strip()
        return style

    def on_broken_pipe(self) -> None:
        self.quiet = True
        discard_output(self.file)

    def say(self, *parts: str | tuple[str, str], indent: int = 0) -> None:
        """One paragraph of (text, style) parts, wrapped at words and indented."""
        self._print_hanging(Text(" " * indent), _text(parts), min(self.width, READABLE))

    def hang(self, *parts: str | tuple[str, str]) -> None:
        """A paragraph whose last part wraps under itself, not under the parts before it."""
        self._print_hanging(_text(parts[:-1]), _text(parts[-1:]), self.width)

    def _print_hanging(self, head: Text, text: Text, width: int) -> None:
        """A command that can be typed is not broken: its first half would be another command. One
        that is longer than a line gets a line of its own."""
        width, cuts, plain = max(width - head.cell_len, 1), list[int](), text.plain
        for start, end, last in commands_in(plain):
            if cell_len(plain[start:end]) > width:
                cuts += [start, min(end + 1, len(plain))]  # with the space
                continue
            stop = last if cell_len(plain[start:last]) <= width else end
            plain = plain[:start] + plain[start:stop].replace(" ", JOINED) + plain[stop:]
        text.plain = plain
        lines: list[Text] = []
        for number, part in enumerate(text.divide(cuts)):
            if cuts:
                part.rstrip()
            if part or not cuts:
                lines += [part] if number % 2 else part.wrap(self, width, overflow="fold")
        shown = head + Text("\n" + " " * head.cell_len).join(lines)
        shown.plain = shown.plain.replace(JOINED, " ")
        self.print(shown, soft_wrap=True)

    def message(self, *parts: str | tuple[str, str]) -> None:
        """A message that stays on one line however long it is: scripts look for it."""
        self.print(_text(parts), soft_wrap=True)

    def one_line(self, *parts: str | tuple[str, str]) -> None:
        """A line that is cropped rather than wrapped."""
        text = _text(parts)
        cut: OverflowMethod = "crop" if self.marks is ASCII else "ellipsis"
        self.print(text, no_wrap=True, overflow=cut, crop=True)

    def gap(self) -> None:
        self.print()

    def heading(self, title: str, text: str = "") -> None:
        """A title with space above it, and the Markdown that belongs to it."""
        self.gap()
        self.say((title, "title"))
        if text:
            self.prose(text, indent=2)

    def prose(self, text: str, indent: int = 0) -> None:
        """Markdown that someone wrote: a task, notes, the docstring of a check."""
        if self.marks is ASCII:  # rich would draw bullets and rules that this terminal lacks
            self.print(Padding(Text(text.strip()), (0, 0, 0, indent), expand=False))
            return
        if plain := plain_prose(text, self.width - indent, self):
            self.print(Padding(plain, (0, 0, 0, indent), expand=False))
            return
        from rich.markdown import Markdown  # costs as much as the rest of rich together

        from attnlab.render.code import theme

        # Any: the argument is called a name, and a theme is as good
        colours: Any = theme()
        shown = Markdown(text.strip(), code_theme=colours, hyperlinks=False)
        self.print(Padding(shown, (0, 0, 0, indent)))

    def do_next(self, text: str) -> None:
        """The one thing to do next; always the last line of a page."""
        if text:
            self.gap()
            self.hang(("next: ", "next"), text)


def commands_in(text: str) -> Iterator[tuple[int, int, int]]:
    """Where attnlab's commands begin in a sentence, where they end at least, and where at most:
    nothing says of a plain word whether it is an argument, or how the sentence goes on."""
    for found in COMMAND.finditer(text):
        last = end = found.end()
        plain, before = 0, ""
        while word := WORD.match(text, last):
            value = before.startswith("-") and not word[1].endswith("s")  # no `--all shows`
            if OF_ARGUMENT.search(word[1]) or value or not before:
                end, plain = word.end(1), 0
            elif (plain := plain + 1) > PLAIN_WORDS:
                break
            last, before = word.end(), word[1]
            if before.endswith((",", ";", ".", ":", ")")):
                break
        yield found.start(), end, last


def opens_links(environment: Mapping[str, str]) -> bool:
    """Whether this terminal is one that knows OSC 8."""
    program = environment.get("TERM_PROGRAM", "").lower()
    vte = environment.get("VTE_VERSION", "")
    return (
        program in ("iterm.app", "wezterm", "vscode", "ghostty", "hyper")
        or environment.get("TERM", "") in ("xterm-kitty", "alacritty", "foot", "xterm-ghostty")
        or bool(environment.get("WT_SESSION"))
        or (vte.isdecimal() and int(vte) >= 5000)
    )


def _text(parts: Sequence[str | tuple[str, str]]) -> Text:
    return Text.assemble(
        *(
            (escape_control(p), "") if isinstance(p, str) else (escape_control(p[0]), p[1])
            for p in parts
        )
    )


def escape_control(text: str) -> str:
    """`text` without what a terminal would obey: what a file under study says is only shown."""
    return CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def truncate(text: str, width: int, dots: str = "…") -> str:
    """`text` on one line and at most `width` cells wide; an ellipsis says that there was more."""
    text = " ".join(text.split())
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(0, width - cell_len(dots))).rstrip() + dots[: max(0, width)]


def bare_table(
    *titles: str | Text, right: Container[str | Text] = (), gap: int = 2, header: str = "bold"
) -> Table:
    """A table without lines, whose cells stay on one line; the columns of `right` end there."""
    from rich.table import Table  # a short page needs none, and does not wait for it

    table = Table(box=None, padding=(0, gap, 0, 0), pad_edge=False, header_style=header)
    for title in titles:
        table.add_column(title, no_wrap=True, justify="right" if title in right else "left")
    return table


def ticks(right: Iterable[bool], marks: Marks) -> Text:
    """A mark for each of several, green or red."""
    return Text(" ").join(Text(marks.ok, "ok") if one else Text(marks.bad, "bad") for one in right)


def level_marks(marks: Marks, value: int) -> str:
    return marks.full * value + marks.empty * (5 - value)


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def show_error(error: AttnlabError, screen: Screen) -> None:
    """What stopped us, where, and what to do."""
    where = f"{error.where}: " if error.where and error.where not in error.message else ""
    screen.message(("error: ", "bad"), where + error.message)
    if error.hint:
        screen.message(("hint: ", "next"), error.hint)


def plain_text(show: Callable[[Screen], None], width: int) -> str:
    """What `show` prints on a screen without colours, as for an exception's message."""
    file = io.StringIO()
    show(Screen(file=file, width=width, color=False))
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


def stdout() -> Screen:
    return Screen(file=sys.stdout)


def stderr() -> Screen:
    return Screen(file=sys.stderr)
