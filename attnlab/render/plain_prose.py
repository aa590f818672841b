"""Markdown of the plain kind, as rich shows it, without what rich loads for it: paragraphs, lists
with `*`, and words in backticks."""

import re
from collections.abc import Iterator
from itertools import pairwise

from rich.console import Console
from rich.text import Text

CODE = re.compile(r"`([^`]+)`")
# Outside of backticks: what Markdown takes for more than words, and what is told by spaces.
MORE = re.compile(
    r"[\\`<&\[\]|~\t]|://|\*[^\s]|(?<![^\W_])_|_(?![^\W_])|\S  "
    r"|^ {4}|^ +\* |^ *(?:[#>=+-]|\d+[.)] )",
    re.MULTILINE,
)
ODD = re.compile(r"\A(?: |(?!\* )[^\0]*\n\* )")  # a block that goes on in one, or begins one
BULLET = " • "


def plain_prose(text: str, width: int, console: Console) -> Text | None:
    """The text, wrapped; None where rich is needed to show it."""
    words = CODE.split(text.strip())
    if any(MORE.search(each) for each in words[::2]) or any("  " in each for each in words[1::2]):
        return None
    blocks = re.split(r"\n\s*\n", text.strip())
    lists = [block.startswith("* ") for block in blocks]
    if any(map(all, pairwise(lists))) or any(map(ODD.search, blocks)):
        return None
    shown = (Text("\n").join(_lines(block, width, console)) for block in blocks)
    return Text("\n" * lists[0]) + Text("\n\n").join(shown)  # rich begins a list with a gap


def _lines(block: str, width: int, console: Console) -> Iterator[Text]:
    """A paragraph, or the items of a list."""
    bullet = BULLET if block.startswith("* ") else ""
    for item in block.removeprefix("* ").split("\n* ") if bullet else [block]:
        text = Text()
        for number, part in enumerate(CODE.split(" ".join(item.split()))):
            text.append(part, "markdown.code" if number % 2 else "")
        head = bullet
        for line in text.wrap(console, max(width - len(bullet), 1), overflow="fold"):
            yield Text(head) + line
            head = " " * len(bullet)
