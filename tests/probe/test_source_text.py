"""What a text says, read and not run: where it calls something, and numbers that it names."""

import pytest

from attnlab.probe.source_text import lines_calling, numbers_in

TEXT = """import torch
from torch import Tensor, empty

def made(x: Tensor) -> Tensor:
    a = torch.empty(3)
    b = empty(
        4)
    return x.new_empty(2).copy_(a), b, torch.empty
"""


def test_calls_are_found_by_their_last_name():
    """However they are reached; a type that is named is none."""
    assert lines_calling(TEXT, frozenset({"empty", "Tensor"})) == (5, 6)
    assert lines_calling(TEXT, frozenset({"new_empty"})) == (8,)


@pytest.mark.parametrize("text", ["def (", "\x00", "(" * 5000])
def test_a_text_that_is_no_python_has_none(text):
    """The candidate wrote it."""
    assert lines_calling(text, frozenset({"empty"})) == ()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("if S > 64: pass", (64,)),
        ("def f(x, most=2**7): return x[: 1 << 4]", (16, 128)),
        ("class M:\n    def f(self):\n        return [g(8) for _ in (5, -6)]", (5, 6, 8)),
        ("x = 32.0", (32,)),
        ("x = 0.5, 1, 2, 3, True, 10000, '77'", ()),
        ("def (", ()),
        ("x = '\0'", ()),
    ],
)
def test_what_is_read(text, found):
    """Folded constants, defaults and those inside functions; no small ones and no huge ones."""
    assert numbers_in(text) == found


def test_nothing_is_printed(recwarn):
    """A worker that stays up has nobody who reads what a file is warned of."""
    assert numbers_in("x = 7 is 8") == (7, 8)
    assert not recwarn.list


def test_nothing_is_run():
    """The text is a stranger's."""
    numbers_in("raise SystemExit(64)")
