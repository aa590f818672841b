"""The page of released models: what was found stands there with what came of it."""

from __future__ import annotations

import pytest

from attnlab.records import Finding
from benchmarks.examined import EXAMINED, verdict_of

wild = pytest.importorskip("benchmarks.wild.pages")
from benchmarks.wild.measure import Wild  # noqa: E402 - after the check that it can be had


def finding(file, rule):
    return Finding(file=file, rule=rule, line=1, op="view", severity="warning", message="m")


def test_a_warning_is_known_by_its_file_and_rule():
    """Its line moves from release to release."""
    for entry in EXAMINED:
        assert verdict_of(f"x/{entry.where}", entry.rule) is entry
        assert verdict_of(entry.where, "another-rule") is None


def test_the_page_counts_what_ran(monkeypatch):
    """A family that does not build is no row; what nobody looked at is counted."""
    monkeypatch.setattr(wild, "version", lambda name: "1.0")
    found = [
        Wild("gpt2", rows=10, named=9, axes=10, held=4),
        Wild("bark", "no forward"),
        Wild("odd", rows=5, named=5, axes=5, findings=(finding("odd.py", "reshape-cut"),)),
    ]
    page = wild.page(found)
    assert "* 2 families run, 15 rows, 93.3 % of axes named" in page
    assert "warnings nobody looked at: 1" in page
    assert "| odd | 5 | 100.0 % | `reshape-cut` |" in page
    assert "bark" not in page
    assert page.index("### Bugs") < page.index("### Meant so") < page.index("## The families")
