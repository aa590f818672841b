"""The page of a property that does not hold in a user's own test, whole."""

from dataclasses import replace

import pytest
from sample_records import check, op

from attnlab.records import Finding, Trace
from attnlab.render.finding import PropertyPage, as_text

RESULT = check(
    "causality", "failed", "the output at position 0 changed", advice="Look at the mask.",
    sizes={"B": 2, "S": 4},
)  # fmt: skip
TRACE = Trace(
    ops=(
        op(0, 9, "linear", "qkv = self.qkv(x)", "B S 3*D", "2 4 24"),
        op(1, 10, "softmax", "weights = scores.softmax(-1)", "B S S'", "2 4 4"),
    )
)
PAGE = PropertyPage(result=RESULT, target="Net.forward, net.py:3", seed=7, trace=TRACE)


def test_the_whole_page():
    """Place, sizes and seed, the rows, what to do next."""
    lines = as_text(PAGE).splitlines()
    assert lines[:2] == ["Net.forward, net.py:3  B=2 S=4  seed 7", ""]
    assert [line.split()[:2] for line in lines[2:5]] == [
        ["line", "op"],
        ["9", "linear"],
        ["10", "softmax"],
    ]
    assert lines[5:] == ["", "next: Look at the mask."]


def test_a_line_of_the_candidate_is_the_place():
    """Where something was raised, that line is what to open."""
    crashed = replace(RESULT, file="net.py", line=12)
    assert as_text(replace(PAGE, result=crashed)).startswith("net.py:12  B=2 S=4  seed 7\n")


def test_without_rows_the_page_is_short():
    """A call that could not be traced leaves place and advice."""
    assert as_text(replace(PAGE, trace=None)).splitlines() == [
        "Net.forward, net.py:3  B=2 S=4  seed 7",
        "",
        "next: Look at the mask.",
    ]


def test_long_traces_are_cut():
    """Forty rows, and how many more there are."""
    many = Trace(ops=tuple(op(i, i, f"op{i}", "x", "B S", "2 4") for i in range(42)))
    text = as_text(replace(PAGE, trace=many))
    assert "op39" in text
    assert "op40" not in text
    assert "and 2 operations more" in text


@pytest.mark.parametrize(("severity", "shown"), [("warning", True), ("note", False)])
def test_findings_of_the_trace_stand_below_it(severity, shown):
    """Notes are left out: the property that failed is what matters."""
    finding = Finding(
        rule="silent-broadcast", file="net.py", line=10, op="softmax", severity=severity,
        message="grows by B",
    )  # fmt: skip
    text = as_text(replace(PAGE, trace=replace(TRACE, findings=(finding,))))
    assert ("grows by B" in text) is shown


def test_the_document_has_the_same_facts():
    """For whoever reads JSON."""
    document = PAGE.document()
    assert (document["check"]["id"], document["seed"], len(document["ops"])) == ("causality", 7, 2)
