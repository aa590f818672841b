"""Python in colours that a dark and a light background both bear: the terminal's own, no yellow."""

from __future__ import annotations

import re
from functools import cache
from keyword import kwlist
from typing import TYPE_CHECKING

from rich.style import Style
from rich.text import Text

if TYPE_CHECKING:
    from rich.syntax import ANSISyntaxTheme

# Of each kind of token its style, its name in Pygments, and how it is found; the first one counts.
TOKENS = (
    ("dim", ("Comment",), r"\#.*"),
    ("green", ("Literal", "String"), r'[rbfuRBFU]{0,2}"""(?:\\.|[^\\])*?(?:"""|\Z)'),
    ("green", ("Literal", "String"), r"[rbfuRBFU]{0,2}'''(?:\\.|[^\\])*?(?:'''|\Z)"),
    ("green", ("Literal", "String"), r'[rbfuRBFU]{0,2}"(?:\\.|[^"\\\n])*"?'),
    ("green", ("Literal", "String"), r"[rbfuRBFU]{0,2}'(?:\\.|[^'\\\n])*'?"),
    ("cyan", ("Name", "Decorator"), r"^[ \t]*@[\w.]+"),
    ("bold cyan", ("Name", "Class"), r"(?<=\bclass )\w+"),
    ("bold cyan", ("Name", "Function"), r"(?<=\bdef )\w+"),
    ("bold", ("Keyword",), rf"\b(?:{'|'.join(kwlist)})\b"),
    ("bold", ("Operator", "Word"), r"(?!)"),  # keywords, too
    ("", (), r"[^\W\d]\w*"),
    ("magenta", ("Literal", "Number"), r"0[xX][\da-fA-F_]+|(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE]-?\d+)?"),
)


@cache
def _token() -> re.Pattern[str]:
    return re.compile("|".join(f"({found})" for _, _, found in TOKENS), re.MULTILINE)


def theme() -> ANSISyntaxTheme:
    """The same colours for code in Markdown, which rich highlights with Pygments."""
    from rich.syntax import ANSISyntaxTheme

    return ANSISyntaxTheme({name: Style.parse(style) for style, name, _ in TOKENS})


def highlight_python(code: str) -> Text:
    """Highlighted, and not cut into lines of any width: what is copied must be whole. Pygments
    would take longer to load than all else that a page needs."""
    text = Text(code)
    for found in _token().finditer(code):
        if style := TOKENS[(found.lastindex or 1) - 1][0]:
            text.stylize(style, *found.span())
    return text
