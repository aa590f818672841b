"""Arguments that one path forgets."""

import pytest

from attnlab.target.source_findings import source_findings

FAST = """
def attend(q, k, v, window=None):
    q = q * 2
    if {test}:
        return kernel(q, k, v, window)
    {first}
    return (q @ k.mT).softmax(-1) @ v
"""


@pytest.mark.parametrize(
    ("first", "test", "lines"),
    [
        ("k = k.clone()", "kernel is not None", [6]),
        ("k = cut(k, window)", "kernel is not None", []),
        ("k = k.clone()", "window is not None", []),
    ],
)
def test_a_fallback_that_forgets_an_argument_is_told(first, test, lines):
    """Where the fast path uses it and does not ask whether it was given."""
    found = list(source_findings(FAST.format(first=first, test=test), "a.py"))
    assert [(f.rule, f.line) for f in found] == [("unused-argument", n) for n in lines]
