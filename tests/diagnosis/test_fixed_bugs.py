"""Bugs that public repositories had: attnlab diff names the line that their fix changed."""

import tomllib
from pathlib import Path

import pytest

from attnlab.candidate.host import LocalHost
from attnlab.grading.pipeline import run_job
from attnlab.records import Limits
from attnlab.target.command_line import TraceCommand
from attnlab.target.diff_target import diff_job

FILE = Path(__file__).parent / "fixed_bugs.toml"
BUGS = {bug["id"]: bug for bug in tomllib.loads(FILE.read_text("utf-8"))["bug"]}
FAR = 1  # lines


def diagnosis_of(bug, folder):
    """What is said of the file as it was, beside the file with the fix; and the line of the fix."""
    mine, right = folder / "before.py", folder / "after.py"
    mine.write_text(bug["code"].replace("FIX", bug["wrong"]), encoding="utf-8")
    right.write_text(bug["code"].replace("FIX", bug["right"]), encoding="utf-8")
    typed = TraceCommand(
        target=str(mine), init=bug["init"], sizes=bug["sizes"], inputs=tuple(bug["inputs"])
    )
    report = run_job(diff_job(typed, str(right), Limits(seconds=600)), lambda *_: LocalHost())
    wrong = bug["wrong"].strip()
    lines = mine.read_text("utf-8").splitlines()
    return report.diff, next(n for n, line in enumerate(lines, 1) if wrong in line)


@pytest.mark.parametrize("bug", BUGS.values(), ids=BUGS)
def test_the_fixed_line_is_named(bug, tmp_path):
    """One line, the one that the fix changed, and how it is wrong."""
    diff, line = diagnosis_of(bug, tmp_path)
    assert diff.outcome == "different", diff.message
    assert [abs(d.line - line) <= FAR for d in diff.diagnosis] == [True], diff
