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


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        ("keep[:, None]", ["mask-turned"]),
        ("~keep[:, None]", []),
        ("keep == 0", []),
        ("pad[:, None]", []),
        ("expand(keep)", []),
    ],
)
def test_what_is_to_be_kept_is_not_filled(mask, expected):
    """masked_fill hides where its mask is True."""
    text = f"scores = scores.masked_fill({mask}, float('-inf'))"
    assert [f.rule for f in source_findings(text, "a.py")] == expected


@pytest.mark.parametrize(
    ("read", "expected"), [("best * 1", ["unused-argument"]), ("best * p_mask", [])]
)
def test_a_mask_that_must_be_given_is_read(read, expected):
    """A maximum over tokens takes padding in where the mask of a helper is forgotten."""
    text = f"def maxsim(sim, p_mask):\n    best = sim.amax(-1)\n    return {read}\n"
    assert [f.rule for f in source_findings(text, "a.py")] == expected
