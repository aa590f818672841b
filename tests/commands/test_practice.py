"""start, reset, hint, solution, explain, list: what a user does around the grading."""

import errno
import os
import re
import sys
from itertools import pairwise
from pathlib import Path

import pytest

import attnlab
from attnlab.catalogue.finding_rules import RULES
from attnlab.progress import Progress

NAME = "too-sharp"
FILE = Path(f"{NAME}.py")
MARK = f"# attnlab: attention/{NAME}\n"


def standing(shell):
    rows = shell("list", "--json").json["challenges"]
    return next(row for row in rows if row["slug"] == f"attention/{NAME}")


# ---------------------------------------------------------------- start and reset


def test_start_writes_the_marked_file(shell):
    """The shipped file under a first line that names the challenge; nothing else changes."""
    said = shell("start", NAME)
    assert said.code == 0
    assert f"wrote ./{FILE}" in said.out
    text = FILE.read_text()
    assert text.startswith(MARK)
    assert "class MultiHeadSelfAttention" in text
    assert standing(shell)["status"] == "started"


def test_start_never_overwrites(shell):
    """What stands there stays, also when it is a folder or a link to nowhere."""
    FILE.write_text("mine")
    said = shell("start", NAME)
    assert said.code == 2
    assert FILE.read_text() == "mine"
    assert "already exists" in said.err


def test_start_does_not_follow_a_dangling_link(shell):
    """A link is something that stands there."""
    FILE.symlink_to("elsewhere.py")
    assert shell("start", NAME).code == 2
    assert not Path("elsewhere.py").exists()


def test_force_keeps_every_old_file(shell):
    """Nothing is lost, however often."""
    for number in range(3):
        FILE.write_text(f"try {number}")
        said = shell("start", NAME, "--force", "--json")
        assert said.json["kept"] == f"./{FILE}.{number + 1}"
    assert [Path(f"{FILE}.{n}").read_text() for n in (1, 2, 3)] == ["try 0", "try 1", "try 2"]
    assert FILE.read_text().startswith(MARK)


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="needs a read-only folder of Linux"
)
def test_start_in_a_read_only_folder(shell, monkeypatch):
    """One clear line; /proc is read-only for root, too."""
    monkeypatch.chdir("/proc")
    said = shell("start", NAME)
    assert said.code == 2
    assert said.err.startswith(f"error: ./{FILE} cannot be written: ")
    assert "change to a folder" in said.err


@pytest.mark.parametrize("force", [(), ("--force",)])
def test_a_disk_that_fills_up_leaves_no_half_file(force, shell, monkeypatch):
    """A file is written as a whole or not at all; the old one stays where it is."""

    def fill_up(path, text, **_kind):
        path.write_bytes(text[:10].encode())
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if force:
        FILE.write_text("my work")
    monkeypatch.setattr(Path, "write_text", fill_up)
    said = shell("start", NAME, *force)
    assert said.code == 2
    assert said.err.startswith(f"error: ./{FILE} cannot be written: No space left on device")
    assert [path.read_bytes() for path in Path().glob("*")] == ([b"my work"] if force else [])
    assert not list(Path().glob(".*"))


def test_reset_puts_the_starter_back(shell):
    """By slug or by file; the old one is kept beside it."""
    shell("start", NAME)
    fresh = FILE.read_text()
    FILE.write_text(MARK + "broken")
    assert shell("reset", str(FILE)).code == 0
    assert FILE.read_text() == fresh
    assert Path(f"{FILE}.1").read_text() == MARK + "broken"


def test_reset_of_a_file_elsewhere(shell):
    """The file that is named is the one put back, not one of its name here."""
    moved = Path("sub", "other.py")
    moved.parent.mkdir()
    moved.write_text(MARK)
    assert shell("reset", str(moved)).code == 0
    assert "class" in moved.read_text()
    assert not FILE.exists()


def test_reset_without_a_file_starts(shell):
    """There is nothing to keep, and a fresh file is what was asked for."""
    assert shell("reset", NAME, "--json").json["kept"] == ""
    assert FILE.read_text().startswith(MARK)


# ---------------------------------------------------------------- hints


def test_hints_come_one_by_one_and_are_recorded(shell):
    """One more each time, all of those before with it, and no fourth."""
    taken = [shell("hint", NAME, "--json").json for _ in range(5)]
    assert [len(document["hints"]) for document in taken] == [1, 2, 3, 3, 3]
    assert {document["total"] for document in taken} == {3}
    assert standing(shell)["hints"] == 3


def test_hint_by_a_started_file(shell):
    """The file's first line names the challenge."""
    shell("start", NAME)
    FILE.rename("renamed.py")
    assert shell("hint", "renamed.py", "--json").json["challenge"] == f"attention/{NAME}"


def test_a_file_without_its_mark_is_refused(shell):
    """With what to write instead."""
    Path("own.py").write_text("x = 1\n")
    said = shell("hint", "own.py")
    assert said.code == 2
    assert "attnlab trace own.py" in said.err
    assert "type attnlab hint NAME;" in said.err
    assert "type attnlab grade NAME own.py;" in shell("grade", "own.py").err


def test_a_file_that_is_not_there_names_its_challenge(shell):
    """A challenge's file that was never started: what to type instead."""
    said = shell("hint", str(FILE))
    assert said.code == 2
    assert f"type attnlab hint {NAME};" in said.err


def test_start_takes_no_file(shell):
    """It says which challenge the file belongs to."""
    shell("start", NAME)
    said = shell("start", str(FILE))
    assert said.code == 2
    assert f"{FILE} is a file of {NAME} already" in said.err


# ---------------------------------------------------------------- solution and notes


def test_solution_asks_first(shell):
    """With nobody at the terminal it stays closed, and says how to open it."""
    said = shell("solution", NAME)
    assert (said.code, said.out) == (2, "")
    assert "--yes" in said.err
    assert not standing(shell)["solution_seen"]


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 2), ("\n", 2)])
def test_solution_takes_the_answer(shell, monkeypatch, answer, code):
    """Only a yes opens it; the question goes to stderr."""
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", lambda text, err: err and answer.startswith("y"))
    assert shell("solution", NAME).code == code


def test_solution_shows_the_change_and_the_notes(shell):
    """What was there, what it must be, and why; and it is recorded."""
    said = shell("solution", NAME, "--yes")
    assert said.code == 0
    assert any(line.startswith("-  ") for line in said.out.splitlines())
    assert any(line.startswith("+  ") for line in said.out.splitlines())
    assert "Why it is wrong" in said.out
    assert standing(shell)["solution_seen"]
    assert shell("solution", NAME).code == 0  # asked once


def test_a_solution_names_the_lines_as_they_stand_in_the_started_file(shell):
    """Below the line that start writes; a grade of the file as it was given is marked as such."""
    shell("start", NAME)
    text = Path(f"{NAME}.py").read_text()
    said = shell("solution", NAME, "--yes", "--json").json
    assert said["solution"].splitlines()[0] == text.splitlines()[0]
    hunk = int(re.search(r"^@@ -(\d+)", said["diff"], re.MULTILINE)[1])
    shown = [line[1:] for line in said["diff"].splitlines() if line[:1] in " -"][1:]
    assert text.splitlines()[hunk - 1 :][: len(shown)] == shown
    for line in (said.get("parting") or {}).get("diagnosis", ()):
        assert line["source"].strip() in text.splitlines()[line["line"] - 1]


def test_notes_open_with_the_solution(shell):
    """Before that they would spoil the puzzle."""
    said = shell("explain", NAME)
    assert said.code == 2
    assert "attnlab hint" in said.err
    shell("solution", NAME, "--yes")
    assert "Why it is wrong" in shell("explain", NAME).out


def test_notes_end_with_the_rows_that_went_wrong(shell):
    """They are traced anew: the place is that of the edit, and another bug has another place. Of a
    bug that no plain call shows, the check that fails is told."""
    solved = shell("solution", "too-sharp", "--yes").out.partition("Where it shows")[2]
    assert "as shipped" in solved
    assert "hd" in solved
    assert shell("explain", "too-sharp").out.partition("Where it shows")[2] in solved
    shown = shell("solution", "not-at-half-the-price", "--yes", "--json").json
    assert shown["parting"]["outcome"] == "same"
    assert shown["failure"]["id"] == "dtype-parity"


def test_explain_shows_a_mutation(shell):
    """The names in a table of survivors can be looked up: right and wrong stand side by side."""
    document = shell("explain", "mask-fill-value", "--json").json
    assert document["kind"] == "mutation"
    assert document["title"].startswith("Masked scores get a wrong value")
    assert "Right: " in document["text"]
    assert "Wrong: " in document["text"]


def test_explain_shows_every_rule_of_a_trace(shell):
    """Each that the sources name, and no other; alone it lists them."""
    package = Path(attnlab.__file__).parent
    sources = [*package.glob("tracer/**/*.py"), *package.glob("target/*.py")]
    sources += [package / "grading/trace_stage.py", package / "suspicions.py"]
    text = "\n".join(source.read_text() for source in sources)
    assert [
        rule
        for rule, told in RULES.items()
        if told.layer in ("trace", "unused") and f'"{rule}"' not in text
    ] == []
    named = re.findall(r'(?:report\(\s*call\.row,|finding_at\(\s*op,|rule=)\s*"([a-z-]+)"', text)
    assert named
    assert set(named) - {"crash"} <= RULES.keys()
    page = shell("explain", "reshape-cut", "--json").json
    assert (page["kind"], page["id"]) == ("finding", "reshape-cut")
    said = shell("explain").out
    assert "reshape-cut" in said
    assert "causality" in said


def test_explain_shows_a_check(shell):
    """Its title, its own words, and what to do when it fails."""
    document = shell("explain", "causality", "--json").json
    assert (document["kind"], document["id"]) == ("check", "causality")
    assert document["text"]
    assert document["advice"]


# ---------------------------------------------------------------- list


def test_list_names_broken_challenges_on_stderr(shell, tmp_path):
    """One broken folder hides no other."""
    folder = tmp_path / "more" / "topic" / "broken"
    folder.mkdir(parents=True)
    (folder / "challenge.toml").write_text("format = ")
    said = shell("list", "--catalogue", str(tmp_path / "more"), "--json")
    assert said.code == 0
    assert said.err.startswith("warning: left out: ")
    assert said.json["challenges"]


def test_no_home_is_a_warning(shell, monkeypatch, tmp_path):
    """Practice goes on where progress cannot be kept."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ATTNLAB_HOME", str(tmp_path / "file" / "home"))
    said = shell("hint", NAME)
    assert said.code == 0
    assert "warning: progress is not saved" in said.err
    assert "hint 1 of 3" in said.out


def test_a_fourth_hint_says_that_there_is_none(shell):
    """The three are shown again, with the word that they are all."""
    for _ in range(3):
        assert "no further hint" not in shell("hint", "too-sharp").out
    assert "There is no further hint: these are all 3." in shell("hint", "too-sharp").out


@pytest.fixture
def graded(shell):
    """Records a grade, as `attnlab grade` does."""

    def grade(outcome, score):
        with Progress.open() as progress:
            progress.add_grade("attention/too-sharp", outcome, score, "too-sharp.py")

    return grade


def test_what_is_solved_is_not_to_be_fixed(shell, graded):
    """Hints and solution of a solved challenge send nobody back to it."""
    graded("passed", 1.0)
    assert "it is solved already" in shell("hint", "too-sharp").out
    said = shell("solution", "too-sharp").out
    assert "make the change yourself" not in said
    assert said.rstrip().endswith("next: attnlab list shows what is left")


@pytest.mark.parametrize(("first", "state"), [("solution", "solution seen"), ("grade", "solved")])
def test_solved_after_the_solution_looks_different(shell, graded, first, state):
    """Reading it after solving takes nothing away; before, the list says so."""
    if first == "grade":
        graded("passed", 1.0)
    shell("solution", "too-sharp", "--yes")
    graded("passed", 1.0)
    line = next(li for li in shell("list", "--all").out.splitlines() if " too-sharp " in li)
    assert f" {state} " in line
    assert standing(shell)["peeked"] is (first == "solution")


def test_house_rules_stand_in_one_place(shell):
    """Tasks say what is special to them; the page says what all of them ask."""
    page = shell("explain", "rules")
    assert (page.code, "House rules" in page.out, "dtype" in page.out) == (0, True, True)
    assert shell("explain", "rules", "--json").json["id"] == "rules"


def test_pages_on_subjects_are_explained_and_listed(shell):
    """By name and in the list; a slip of the pen gets a suggestion."""
    page = shell("explain", "masks", "--json").json
    assert (page["kind"], page["title"]) == ("page", "What True means in a mask")
    assert "resize-vocabulary" in shell("explain").out
    wrong = shell("explain", "maskes")
    assert (wrong.code, "masks" in wrong.err) == (2, True)


def test_no_line_of_the_notes_becomes_a_list_by_accident():
    """In Markdown a line that begins with a plus or a minus is an item of a list."""
    notes = (Path(__file__).parents[2] / "challenges").glob("*/*/notes.md")
    for path in notes:
        lines = path.read_text(encoding="utf-8").splitlines()
        starts = [
            b
            for a, b in pairwise(lines)
            if a and not a.startswith(("*", "-", " ")) and b[:2] in ("+ ", "- ")
        ]
        assert not starts, path


# ---------------------------------------------------------------- show


def test_show_describes_a_challenge_before_it_is_started(shell):
    """Its symptom and task, its tracks, and how far one is; nothing is started by it."""
    said = shell("show", "too-sharp")
    assert said.code == 0
    assert "Attention that is too sure of itself" in said.out
    for word in ("symptom", "task", "tracks", "so far   new", "attnlab start too-sharp"):
        assert word in said.out
    shown = shell("show", "too-sharp", "--json").json
    assert (shown["slug"], shown["status"]) == ("attention/too-sharp", "new")
    assert "attention" in shown["tracks"]


def test_show_of_a_started_challenge_says_how_it_goes_on(shell):
    """It is here already; the hints that were taken are counted."""
    shell("start", "too-sharp")
    shell("hint", "too-sharp")
    said = shell("show", "too-sharp").out
    assert "started, 1 hint taken" in said
    assert "next: fix it here, then attnlab grade too-sharp" in said
    assert "attnlab start" not in said


def test_show_describes_a_program(shell):
    """With its bugs, stages and minutes."""
    said = shell("show", "char-gpt").out
    assert "bugs to draw from, 3 stages" in said
    assert "attnlab interview start char-gpt" in said
