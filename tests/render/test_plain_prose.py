"""Markdown that is shown without rich's parser of it."""

import io

import pytest

from attnlab.render import screen
from attnlab.render.code import highlight_python

PLAIN = (
    "One paragraph with `code` in it, long enough\nto be wrapped at forty cells.\n\nAnother one.",
    "* an item with `x = a * b` that is longer than a line of it\n* one more\n  that goes on",
    "A list:\n\n* first\n* second\n\nand the end.",
)
MARKDOWN = (
    "**bold**",
    "1. one\n2. two",
    "# title\n\ntext",
    "a [link](b)",
    "* one\n  * two",
    "_so_",
)


def shown(text: str) -> list[str]:
    file = io.StringIO()
    screen.Screen(file=file, width=40, color=False).prose(text, indent=2)
    return [line.rstrip() for line in file.getvalue().splitlines()]


@pytest.mark.parametrize("text", PLAIN)
def test_plain_markdown_looks_as_rich_shows_it(text, monkeypatch):
    """It is a shorter way to the same page."""
    assert screen.plain_prose(text, 38, screen.Screen(width=40))
    fast = shown(text)
    monkeypatch.setattr(screen, "plain_prose", lambda *_: None)
    assert fast == shown(text)


@pytest.mark.parametrize("text", MARKDOWN)
def test_what_means_more_is_left_to_rich(text):
    """Nothing that Markdown says is shown as its signs."""
    assert screen.plain_prose(text, 38, screen.Screen(width=40)) is None


def test_words_in_strings_and_comments_are_no_keywords():
    """The text stays as it is, and each token has one style."""
    code = 'def f(x):  # if\n    return "class", x2, 2.5e-3'
    text = highlight_python(code)
    assert text.plain == code
    styled = {code[span.start : span.end]: span.style for span in text.spans}
    assert styled == {
        "def": "bold", "f": "bold cyan", "# if": "dim", "return": "bold", '"class"': "green",
        "2.5e-3": "magenta",
    }  # fmt: skip
