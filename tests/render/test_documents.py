"""The documents of `--json`: the keys that scripts rely on."""

import json
from dataclasses import replace

from sample_records import FAILED, FLAGSHIP, INF, LISTED, NAN, OPS, REPORT, SHARP, TRACE, VERDICT

from attnlab.errors import Unreadable
from attnlab.records import to_json
from attnlab.render.grade import GradePage
from attnlab.render.json import error_document, write_document
from attnlab.render.list import ListPage
from attnlab.render.run import RunPage
from attnlab.render.trace import TracePage

OP = ["index", "op", "line", "file", "source", "shape", "axes", "dtype", "stride", "view"]
OP += ["min", "max", "mean", "nan", "inf", "module"]
FINDING = ["rule", "file", "line", "op", "severity", "message"]
CRASH = ["op", "file", "line", "operands", "message", "explanation"]
CHECK = ["id", "title", "outcome", "message", "file", "line"]
GRADE = ["challenge", "file", "outcome", "score", "checks", "diagnosis", "isolation", "seconds"]


def has(document, keys):
    return set(keys) <= set(document)


def test_trace_has_the_keys_of_the_contract():
    """Operations, findings and the crash with its operands."""
    page = TracePage(target="m.py:M", outcome="crashed", report=REPORT, sizes={})
    document = json.loads(to_json(page.document()))
    assert has(document, ["target", "outcome", "ops", "findings", "crash"])
    assert has(document["ops"][0], OP)
    assert has(document["findings"][0], FINDING)
    assert has(document["crash"], CRASH)
    assert document["crash"]["operands"][0] == {"shape": [2, 2, 32], "axes": ["B", "H", "4*D"]}


def test_nothing_traced_is_still_a_document():
    """The keys stand where there was nothing to put under them."""
    report = replace(REPORT, trace=None, outcome="timeout")
    document = TracePage(target="m.py", outcome="timeout", report=report, sizes={}).document()
    assert (document["ops"], document["findings"], document["crash"]) == ([], [], None)


def test_nan_and_infinities_are_strings():
    """The document is strict JSON, whatever a tensor held."""
    trace = replace(TRACE, ops=(replace(OPS[0], min=-INF, max=INF, mean=NAN),))
    page = TracePage(target="m.py", outcome="ok", report=replace(REPORT, trace=trace), sizes={})
    row = json.loads(to_json(page.document()), parse_constant=float.fromhex)["ops"][0]
    assert (row["min"], row["max"], row["mean"]) == ("-Infinity", "Infinity", "NaN")


def test_grade_has_the_keys_of_the_contract():
    """The verdict, the checks and the diagnosis."""
    document = GradePage(challenge=SHARP, file="x", verdict=FAILED).document()
    assert has(document, GRADE)
    assert has(document["checks"][0], CHECK)
    assert document["file"] == "./too-sharp.py"


def test_run_shows_only_what_the_page_holds():
    """A hidden finding is hidden from scripts, too; its number is not."""
    page = RunPage(
        challenge=FLAGSHIP,
        file="x",
        verdict=VERDICT,
        report=REPORT,
        trace=replace(TRACE, findings=()),
        hidden=2,
        next="",
    )
    document = page.document()
    assert has(document, ["challenge", "file", "outcome", "score", "ops", "crash", "checks"])
    assert (document["findings"], document["hidden_findings"]) == ([], 2)


def test_list_has_the_keys_of_the_contract():
    """One row for each challenge, with the standing."""
    row = ListPage(rows=LISTED).document()["challenges"][0]
    assert has(row, ["slug", "title", "kind", "topic", "level", "status"])
    assert (row["slug"], row["status"]) == ("attention/crash-at-out-proj", "solved")


def test_error_document(capsys):
    """What stopped us, where, and what to do, under `format` 1."""
    write_document(error_document(Unreadable("cannot be read", "Check it.", "x.py")))
    assert json.loads(capsys.readouterr().out) == {
        "format": 1,
        "outcome": "unreadable",
        "error": {"message": "cannot be read", "hint": "Check it.", "where": "x.py"},
    }
