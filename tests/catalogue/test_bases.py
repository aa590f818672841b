"""Bases: right code that carries many bugs, each of them a challenge like any other."""

from dataclasses import replace

import pytest
from challenge_folder import TOML

from attnlab.catalogue.bases import read_base
from attnlab.catalogue.load import load
from attnlab.catalogue.texts import HEADINGS, TASK_HEADINGS, notes_text, shipped_text, solution_text
from attnlab.catalogue.validate import challenge_files, files_to_grade
from attnlab.errors import Unreadable

RIGHT = "class Net:\n    scale = 1\n    shift = 2\n    turn = 3\n"
ONLY_OF_BUGS = ("kind", "level", "source", "symptom", "expected", "hints")
BASE = "".join(line for line in TOML.splitlines(keepends=True) if not line.startswith(ONLY_OF_BUGS))
BUG = """\
title = "Too sure"
level = 2
category = "attention"
symptom = "It is too sure."
source = "constructed"
expected = ["matches-reference"]
hints = ["one", "two", "three"]
why = "The scale is wrong."
find = "Print it."

[[edits]]
old = "scale = 1"
new = "scale = 9"

[[follow_ups]]
question = "Which one?"
answer = "One."

[[follow_ups]]
question = "And then?"
answer = "None."
"""
TASK = (
    BUG.replace("why =", "how =")
    .replace("find =", "test =")
    .replace("level = 2", 'level = 3\nkind = "implement"\nthen = "too-sure"\ntask = "Write it."')
)
DECOY = 'why = "It is the same."\n\n[[edits]]\nold = "shift = 2"\nnew = "shift = 1 + 1"\n'


@pytest.fixture
def folder(tmp_path):
    """A base with two bugs, the second with a decoy in it."""
    texts = {
        "base.toml": BASE,
        "solution.py": RIGHT,
        "alternatives/a.py": RIGHT + "# a\n",
        "alternatives/b.py": RIGHT + "# b\n",
        "bugs/too-sure.toml": BUG,
        "bugs/turned.toml": 'decoys = ["sum"]\n'
        + BUG.replace("scale = ", "turn = ", 1)
        .replace("turn = 1", "turn = 3")
        .replace("scale = 9", "turn = 7"),
        "decoys/sum.toml": DECOY,
        "tasks/write-it.toml": TASK,
    }
    for name, text in texts.items():
        path = tmp_path / "attention/net" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "attention/net"


def bugs(folder):
    good, bad = read_base(folder)
    assert not bad
    return good[:2]


def test_each_bug_is_a_challenge(folder):
    """It has the contract and the task of its base, and texts of its own."""
    sure, turned = bugs(folder)
    assert (sure.slug, sure.base, sure.kind) == ("attention/too-sure", "attention/net", "debug")
    assert sure.contract == turned.contract
    assert (sure.task, sure.category) == ("Make it less sure.", "attention")
    assert [each.answer for each in sure.follow_ups] == ["One.", "None."]


def test_a_task_is_a_challenge_too(folder):
    """With a text of its own, and notes that say how it works and how one tests it."""
    written = read_base(folder)[0][2]
    assert (written.slug, written.kind, written.then) == (
        "attention/write-it",
        "implement",
        "too-sure",
    )
    assert written.task == "Write it."
    assert all(f"## {heading}" in notes_text(written) for heading in TASK_HEADINGS)


def test_what_it_ships_has_its_bug_and_decoys_alone(folder):
    """The solution keeps the decoys, so that it differs from the shipped file by the fix."""
    sure, turned = bugs(folder)
    assert shipped_text(sure) == RIGHT.replace("scale = 1", "scale = 9")
    assert solution_text(sure) == RIGHT
    decoyed = RIGHT.replace("shift = 2", "shift = 1 + 1")
    assert solution_text(turned) == decoyed
    assert shipped_text(turned) == decoyed.replace("turn = 3", "turn = 7")


def test_its_notes_are_made_of_the_bug(folder):
    """With the headings of every other challenge, and the follow-up questions."""
    text = notes_text(bugs(folder)[0])
    assert all(f"## {heading}" in text for heading in HEADINGS)
    assert "The scale is wrong." in text
    assert "* Which one?\n\n  One." in text


def test_right_files_are_graded_once_for_all_bugs(folder):
    """The solution, the alternatives and each decoy; every bug's own file always."""
    files = [[f.code.file for f in files] for _, files in files_to_grade(bugs(folder))]
    right = ["solution.py", "alternatives/a.py", "alternatives/b.py", "decoys/sum.py"]
    assert files == [["too-sure.py", *right], ["turned.py"]]
    assert [f.code.text for f in challenge_files(bugs(folder)[0])][-1] == RIGHT.replace(
        "shift = 2", "shift = 1 + 1"
    )


def test_a_broken_bug_hides_no_other(folder):
    """It is told with its own slug, file and line."""
    (folder / "bugs/turned.toml").write_text(BUG.replace("level = 2", "level = 9"))
    good, ((slug, error),) = read_base(folder)
    assert [bug.name for bug in good] == ["too-sure", "write-it"]
    assert slug == "attention/turned"
    assert error.where.endswith("bugs/turned.toml:2")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('old = "scale = 1"', 'old = "scale = 5"', "`old` stands 0 times in solution.py"),
        ('category = "attention"', 'category = "luck"', 'category = "luck"'),
        ('title = "Too sure"', 'decoys = ["sun"]', 'decoys[0] = "sun": no such decoy'),
        ('why = "The scale is wrong."\n', "", "why: missing"),
    ],
)
def test_what_a_bug_says_is_checked(folder, old, new, says):
    """As strictly as a challenge of its own."""
    title = 'title = "Too sure"\n' if "title" in old else ""
    (folder / "bugs/too-sure.toml").write_text(title + BUG.replace(old, new))
    _, ((_, error),) = read_base(folder)
    assert says in error.message


@pytest.mark.parametrize(
    ("gone", "says"),
    [
        ("solution.py", "solution.py is missing"),
        ("alternatives/b.py", "found 1, but at least 2 are needed"),
    ],
)
def test_a_base_is_whole_or_not_read(folder, gone, says):
    """What all bugs share is told once."""
    (folder / gone).unlink()
    with pytest.raises(Unreadable, match=says):
        read_base(folder)


def test_a_base_without_bugs_is_told(folder):
    """Else it would only be missing from the list."""
    for path in [*(folder / "bugs").iterdir(), *(folder / "tasks").iterdir()]:
        path.unlink()
    with pytest.raises(Unreadable, match="neither bugs"):
        read_base(folder)


def test_a_bug_is_named_by_what_can_be_typed(folder):
    """Its file's name is the challenge's."""
    (folder / "bugs/turned.toml").rename(folder / "bugs/Turned_Round.toml")
    _, ((_, error),) = read_base(folder)
    assert '"Turned_Round" is not a slug' in error.message


def test_a_bug_may_promise_more_than_its_base(folder):
    """What takes long to look at, as an export, is not looked at for every other bug."""
    (folder / "bugs/too-sure.toml").write_text('promises = ["exportable"]\n' + BUG)
    sure, turned = bugs(folder)
    assert sure.contract.promises == (*turned.contract.promises, "exportable")


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("constructed", "Nobody reported it: it was made for practice."),
        ("reported in interviews", "It was reported in interviews."),
        ("onnx/onnx PR #7274", "onnx/onnx PR #7274."),
    ],
)
def test_notes_end_with_a_sentence_on_where_it_comes_from(source, says):
    """What was made for practice is not said to have been seen."""
    written = next(c for c in load().challenges if c.base and c.kind == "debug")
    told = notes_text(replace(written, source=source)).partition(f"## {HEADINGS[2]}\n\n")[2]
    assert told.startswith(f"{says}\n")
