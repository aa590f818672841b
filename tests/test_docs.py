"""What the documents say is so."""

import pkgutil
import re
import runpy
import shlex
from pathlib import Path

import pytest

from attnlab import commands

ROOT = Path(__file__).parent.parent
PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs/challenge-format.md",
    "docs/program-format.md",
    "docs/isolation.md",
    "docs/classroom.md",
    "docs/scale.md",
]
COMMANDS = {m.name for m in pkgutil.iter_modules(commands.__path__)} - commands.SHARED


def test_generated_pages_are_up_to_date() -> None:
    """A docstring that changes changes the page made from it: `make docs`."""
    make = runpy.run_path(str(ROOT / "docs" / "make.py"))
    assert make["main"](["--check"]) == 0


def test_every_row_of_the_library_has_a_system_and_a_test() -> None:
    """Spec rows A1, A3-A6 and B1-B10 are covered, each by tests that cite it."""
    make = runpy.run_path(str(ROOT / "docs" / "make.py"))
    tested = dict(make["citing_tests"]())
    rows = {"A1", *(f"A{n}" for n in range(3, 7)), *(f"B{n}" for n in range(1, 11))}
    assert not {row for row in rows if not tested.get(row)}
    covered = {row for system in make["systems"]() for row in system.rows}
    assert not rows - covered - {"B10"}  # B10 is a check, not a system


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    """A relative link names a file of the repository."""
    text = (ROOT / page).read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    assert not [link for link in links if not (ROOT / page).parent.joinpath(link).exists()]


def test_the_readme_names_commands_that_exist() -> None:
    """Every `attnlab WORD` in a code block is a command."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    words = [shlex.split(line, comments=True) for line in lines]
    named = {w[1] for w in words if w[:1] == ["attnlab"] and len(w) > 1 and w[1][0] != "#"}
    assert named
    assert named <= COMMANDS


def test_the_readme_shows_every_command_on_one_page() -> None:
    """All commands stand in one block or are named in it, within the height of a printed page."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(r"## The commands.*?```sh\n(.*?)```", text, re.DOTALL)
    assert block is not None
    assert len(block.group(1).splitlines()) <= 50
    assert not {name for name in COMMANDS if not re.search(rf"\b{name}\b", block.group(1))}


def test_the_readme_says_where_progress_is_stored() -> None:
    """The variable that `attnlab.progress` reads stands in it."""
    assert "ATTNLAB_HOME" in (ROOT / "attnlab" / "progress.py").read_text(encoding="utf-8")
    assert "`ATTNLAB_HOME`" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_sets_up_with_two_commands() -> None:
    """Exactly `make demo` and `make test` stand in its first code block."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    first = re.search(r"```sh\n(.*?)```", text, re.DOTALL)
    assert first is not None
    words = [shlex.split(line, comments=True) for line in first.group(1).splitlines()]
    assert words == [["make", "demo"], ["make", "test"]]


SAMPLE = re.compile(r"<!-- shown by: attnlab (.+?) -->\n```\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize(
    ("command", "sample"), SAMPLE.findall((ROOT / "README.md").read_text("utf-8"))
)
def test_samples_in_the_readme_are_what_is_shown(shell, command, sample):
    """Each line of a shortened sample is a line of the page; dots stand for what is left out."""
    shown = [line.rstrip() for line in shell(*command.split()).out.splitlines()]
    lines = [line for line in sample.splitlines() if line.strip() not in ("", "...")]
    assert len(lines) > 5
    assert [line for line in lines if line not in shown] == []
