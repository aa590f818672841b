"""What docs/classroom.md and action.yml tell people to run does what they say."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from attnlab.catalogue.load import load
from attnlab.catalogue.texts import shipped_text, solution_text

ROOT = Path(__file__).parent.parent
ACTION, PAGE = ((ROOT / name).read_text("utf-8") for name in ("action.yml", "docs/classroom.md"))
STEP = re.compile(r"^ *(?:- )?run: (.+)$", re.MULTILINE)
# Instead of installing, what would be installed is noted; all else is the real Python.
PYTHON = f"""#!/bin/sh
if [ "$2" = pip ]; then echo "$@" >> pip.txt; else exec {sys.executable} "$@"; fi
"""


@pytest.fixture(scope="module")
def there(tmp_path_factory):
    """A folder with the submissions of the page, and the steps' programs on its PATH."""
    there = tmp_path_factory.mktemp("class")
    challenge = load().find("too-sharp")
    texts = {"alice": solution_text(challenge), "bob": shipped_text(challenge)}
    (there / "bin").mkdir()
    (there / "submissions").mkdir()
    for person, text in texts.items():
        (there / "submissions" / f"{person}.py").write_text(text)
    mark = f"# attnlab: {challenge.slug}\n"
    (there / "too-sharp.py").write_text(mark + texts["bob"])
    for name, text in {
        "python": PYTHON,
        "attnlab": f'#!/bin/sh\nexec {sys.executable} -m attnlab "$@"\n',
    }.items():
        (there / "bin" / name).write_text(text)
        (there / "bin" / name).chmod(0o755)
    return there


@pytest.fixture
def bash(there):
    """Run a step as the system that runs workflows does: the first command that fails ends it."""

    def run(step: str) -> subprocess.CompletedProcess[str]:
        inputs = {"VERSION": "attnlab==1", "SUBMISSIONS": "submissions", "CHALLENGE": "too-sharp"}
        path = f"{there / 'bin'}{os.pathsep}{os.environ['PATH']}"
        home = {"ATTNLAB_HOME": str(there / "home"), "PATH": path, "TIMEOUT": "30"}
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step]
        return subprocess.run(
            command, cwd=there, env=os.environ | inputs | home, capture_output=True, text=True,
            timeout=300, check=False,
        )  # fmt: skip

    return run


def test_the_action_grades_a_class(there, bash):
    """Its steps in their order: installed, annotated, and the files that the page uploads."""
    install, grade, findings, summary = STEP.findall(ACTION)
    assert bash(install).returncode == 0
    assert (there / "pip.txt").read_text() == "-m pip install attnlab==1\n"
    said = bash(grade)
    assert said.returncode == 1, said.stderr  # bob fails
    assert re.match(r"::error file=submissions/bob.py,title=bob%3A ", said.stdout)
    assert bash(findings).returncode == bash(summary).returncode == 0
    (run,) = json.loads((there / "class.sarif").read_text())["runs"]
    assert {result["kind"] for result in run["results"]} >= {"pass", "fail"}
    assert (there / "class.csv").read_text().count("\n") == 3
    assert "1 of 2 submissions passed" in (there / "class.html").read_text()


def test_what_each_person_runs(there, bash):
    """The steps of the page: annotations of a grade, and properties as JUnit."""
    install, grade, verify = STEP.findall(PAGE)
    assert bash(install).returncode == 0
    said = bash(grade)
    assert (said.returncode, said.stdout[:8]) == (1, "::error ")
    assert bash(verify).returncode == 0
    assert ET.parse(there / "properties.xml").getroot().tag == "testsuites"
