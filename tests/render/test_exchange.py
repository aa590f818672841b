"""What other programs read: annotations, SARIF and JUnit, checked by their structure."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from sample_pages import EVIL, PAGES, SUMMARY, graded
from sample_records import FAILED, SHARP

from attnlab.render.batch import BatchPage
from attnlab.render.exchange import exchange, page_results
from attnlab.render.grade import GradePage
from attnlab.render.screen import Screen
from attnlab.render.verify import VerifyPage

VERIFIED = VerifyPage(target="my.py", built="Net()", outcome="failed", checks=FAILED.checks)
LOST = VerifyPage(target="my.py", built="", outcome="crashed", message="it raised")
READ = {name: PAGES[name] for name in ("grade", "passed", "crashed", "triage", "batch")}
READ |= {"verify": VERIFIED, "lost": LOST}
LEVELS = {"none", "note", "warning", "error"}
KINDS = {"pass", "open", "informational", "notApplicable", "review", "fail"}


def must_be_sarif(document: dict) -> list[dict]:
    """What the schema of SARIF 2.1.0 demands of the parts that are used; returns the results."""
    assert set(document) == {"$schema", "version", "runs"}
    assert document["version"] == "2.1.0"
    (run,) = document["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "attnlab"
    ids = [rule["id"] for rule in driver["rules"]]
    assert len(ids) == len(set(ids))
    assert all(rule["shortDescription"]["text"] for rule in driver["rules"])
    for result in run["results"]:
        assert set(result) <= {"ruleId", "ruleIndex", "kind", "level", "message", "locations"}
        assert ids[result["ruleIndex"]] == result["ruleId"]
        assert result["message"]["text"]
        assert result["level"] in LEVELS
        assert result["kind"] in KINDS
        assert result["kind"] == "fail" or result["level"] == "none"  # section 3.27.9
        for location in result.get("locations", ()):
            place = location["physicalLocation"]
            assert re.fullmatch(r"[\w./~%-]+", place["artifactLocation"]["uri"])
            assert place.get("region", {"startLine": 1})["startLine"] >= 1
    return run["results"]


@pytest.mark.parametrize("name", READ)
def test_sarif_keeps_to_its_schema(name):
    """Each result has a rule, a level that its kind may have, and a place that is a URI."""
    results = must_be_sarif(json.loads(exchange(READ[name], "sarif")))
    assert len(results) == len(list(page_results(READ[name])))
    bad = {"grade", "crashed", "triage", "batch", "verify", "lost"}
    assert any(result["kind"] == "fail" for result in results) == (name in bad)


@pytest.mark.parametrize("name", READ)
def test_junit_counts_what_it_holds(name):
    """A suite for each subject; its counts are those of its cases."""
    suites = ET.fromstring(exchange(READ[name], "junit"))
    assert suites.tag == "testsuites"
    for suite in suites:
        cases = suite.findall("testcase")
        assert int(suite.get("tests")) == len(cases) > 0
        for kind, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(suite.get(kind)) == len(suite.findall(f"testcase/{tag}"))
        assert all(case.get("name") and case.get("classname") for case in cases)


def test_annotations_stand_at_their_lines():
    """One workflow command for each thing that is wrong, on one line; a pass is a notice."""
    lines = exchange(READ["triage"], "github").splitlines()
    assert lines == [
        "::warning file=my.py,line=3,title=my.py%3A silent-broadcast::(2, 4) and (4, 2)"
    ]
    assert exchange(READ["passed"], "github").startswith("::notice title=attnlab::")
    batch = exchange(READ["batch"], "github").splitlines()
    assert batch == ["::error file=bob.py,title=bob%3A finite::NaN"]


@pytest.mark.parametrize("form", ["github", "sarif", "junit"])
def test_what_a_candidate_says_breaks_no_format(form):
    """Line breaks, markup and control characters are shown, and add no command or element."""
    text = f"{EVIL}\n::error::boo\r%0A"
    check = replace(FAILED.checks[0], outcome="failed", message=text, file=text, line=3)
    verdict = replace(FAILED, checks=(check,))
    row = graded(text, "failed")
    for page in (
        GradePage(challenge=SHARP, file=text, verdict=verdict),
        BatchPage(summary=replace(SUMMARY, graded=(row,))),
    ):
        said = exchange(page, form)
        if form == "github":
            assert [line[:8] for line in said.splitlines()] == ["::error "]
        elif form == "junit":
            assert len(list(ET.fromstring(said).iter("failure"))) == 1
        else:
            assert len(must_be_sarif(json.loads(said))) == 1
        assert "\x1b" not in said


def test_links_stand_where_terminals_open_them(tmp_path, monkeypatch):
    """OSC 8 around the place of a failure, in a terminal that knows it, of a file that is there."""
    file = tmp_path / "my file.py"
    file.write_text("x = 1\n")
    check = replace(FAILED.checks[0], outcome="failed", file=str(file), line=1)
    page = GradePage(challenge=SHARP, file="x", verdict=replace(FAILED, checks=(check,)))
    for name in ("NO_COLOR", "VTE_VERSION", "WT_SESSION", "TERM_PROGRAM"):
        monkeypatch.delenv(name, raising=False)

    def shown(term: str) -> str:
        monkeypatch.setenv("TERM", term)
        file = io.StringIO()
        page.show(Screen(file=file, width=200, color=True))
        return file.getvalue()

    assert "\x1b]8;id=" in shown("xterm-kitty")
    assert f"{file.as_uri()}\x1b\\" in shown("xterm-kitty")
    assert "my%20file.py" in shown("xterm-kitty")
    assert "\x1b]8" not in shown("xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b]8" not in shown("xterm-kitty")
    monkeypatch.delenv("NO_COLOR")
    file.unlink()
    assert "\x1b]8" not in shown("xterm-kitty")
