"""Arguments that one path forgets, and ids of 0 that count as none."""

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
    ("text", "rules"),
    [
        ("pad = config.pad_token_id or config.eos_token_id", ["zero-is-none"]),
        ("pad = pad_id or 1", ["zero-is-none"]),
        ("pad = config.pad_token_id or 0", []),
        ("name = config.name or 'model'", []),
        ("pad = eos if pad_id is None else pad_id", []),
    ],
)
def test_an_id_that_may_be_zero_is_no_truth_value(text, rules):
    """`or` takes the other id where padding is 0, and what would give 0 changes nothing."""
    assert [f.rule for f in source_findings(text, "a.py")] == rules
