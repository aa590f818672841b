"""Numbers that a source names, at which it may do something else."""

import pytest

from attnlab.probe.inputs.source_numbers import numbers_in


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
