"""Is a catalogue sound? Each kind of problem is found, and a sound one has none."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from sample_records import FAILED, PASSED, SHARP, check

from attnlab.catalogue.texts import HEADINGS
from attnlab.catalogue.validate import (
    challenge_files,
    quotes_fix,
    unreadable_challenge,
    validate,
)
from attnlab.errors import Refused, Unreadable
from attnlab.records import Bug, Code, Verdict

SHIPPED = "def f(x):\n    return x / scale\n"
SOLUTION = "def f(x):\n    return x * scale\n"


@pytest.fixture
def challenge(tmp_path):
    """A sound one, with one alternative and one mutant."""
    texts = {
        "buggy.py": SHIPPED,
        "solution.py": SOLUTION,
        "alternatives/other.py": SOLUTION,
        "mutants/wrong.py": SHIPPED,
        "notes.md": "".join(f"## {title}\ntext\n" for title in HEADINGS),
    }
    for name, text in texts.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return replace(
        SHARP,
        expected=("matches-reference",),
        folder=str(tmp_path),
        file=str(tmp_path / "buggy.py"),
        solution=str(tmp_path / "solution.py"),
        alternatives=(str(tmp_path / "alternatives/other.py"),),
        mutants=(str(tmp_path / "mutants/wrong.py"),),
        notes=str(tmp_path / "notes.md"),
    )


def honest(challenge, code: Code) -> Verdict:
    """Grades by the text: the right one passes."""
    return PASSED if code.text == SOLUTION else FAILED


def problems(challenge, grade=honest):
    (found,) = validate([challenge], grade, ThreadPoolExecutor(1))
    return list(found.problems)


def test_sound(challenge):
    """Nothing to complain of, and every file counted."""
    (found,) = validate([challenge], honest, ThreadPoolExecutor(2))
    assert found.problems == ()
    assert found.counts == ("1/1", "1/1", "1/1", "1/1", "ok")


def test_order_is_kept(challenge):
    """However the files are graded side by side."""
    many = [replace(challenge, slug=f"t/{n}") for n in range(20)]
    assert [one.slug for one in validate(many, honest, ThreadPoolExecutor(2))] == [
        c.slug for c in many
    ]


@pytest.mark.parametrize("answer", [None, FAILED], ids=["no answer", "refused"])
def test_right_together_is_enough_and_wrong_is_not(challenge, answer):
    """Files are graded in one process, but only a process of its own says what is wrong, and the
    solution has one in any case."""
    alone = []

    def grade(challenge, code):
        alone.append(code.file)
        return honest(challenge, code)

    def grade_many(files):
        right = [file.code.file.startswith("alternatives") for file in files]
        return [answer if each else FAILED for each in right]

    (found,) = validate([challenge], grade, ThreadPoolExecutor(1), grade_many)
    assert found.problems == ()
    assert alone == ["solution.py", "alternatives/other.py"]


@pytest.mark.parametrize(
    ("role", "verdict", "says"),
    [
        ("buggy.py", PASSED, "buggy.py: must fail, came out passed"),
        ("solution.py", FAILED, "solution.py: must pass, came out failed (matches-reference: "),
        ("alternatives/other.py", FAILED, "alternatives/other.py: must pass, came out failed"),
        ("mutants/wrong.py", PASSED, "mutants/wrong.py: must be rejected, came out passed"),
    ],
)
def test_wrong_verdicts(challenge, role, verdict, says):
    """Each role has its own promise."""

    def grade(challenge, code):
        return verdict if code.file.endswith(role) else honest(challenge, code)

    (found,) = problems(challenge, grade)
    assert found.startswith(says)


@pytest.mark.parametrize("outcome", ["cannot-compare", "error", "unreadable"])
def test_a_mutant_must_be_rejected_and_not_just_stumble(challenge, outcome):
    """Only a verdict rejects."""

    def grade(challenge, code):
        mutant = code.file.startswith("mutants")
        return replace(FAILED, outcome=outcome, checks=()) if mutant else honest(challenge, code)

    assert problems(challenge, grade) == [f"mutants/wrong.py: must be rejected, came out {outcome}"]


@pytest.mark.parametrize("outcome", ["failed", "crashed", "timeout", "memory"])
def test_ways_to_be_rejected(challenge, outcome):
    """A crash, a hang and a flood are rejections, too."""

    def grade(challenge, code):
        mutant = code.file.startswith("mutants")
        return replace(FAILED, outcome=outcome) if mutant else honest(challenge, code)

    assert problems(challenge, grade) == []


def test_expected_failures(challenge):
    """All that are expected must be among the failures, and the first must be first."""
    (text,) = problems(replace(challenge, expected=("causality",)))
    assert "expected causality among the failures, which are matches-reference" in text

    folded = check("causality", "failed", folded_under="matches-reference")
    both = replace(FAILED, checks=(folded, *FAILED.checks))

    def grade(challenge, code):
        return honest(challenge, code) if code.text == SOLUTION else both

    assert problems(challenge, grade) == []
    (text,) = problems(replace(challenge, expected=("causality",)), grade)
    assert "expected causality to be the first failure, it is matches-reference" in text


def test_every_bug_must_show(challenge):
    """A bug none of whose checks fails on the shipped file would always count as gone."""
    bugs = (Bug(id="seen", checks=("matches-reference",)), Bug(id="unseen", checks=("finite",)))
    (problem,) = problems(replace(challenge, bugs=bugs))
    assert problem.endswith("no check of the bug unseen is among the failures")


@pytest.mark.parametrize("error", [Refused("defines no such class"), Unreadable("is empty")])
def test_a_file_that_cannot_be_graded_is_a_problem(challenge, error):
    """Not the end of the whole check."""

    def grade(challenge, code):
        if code.file.startswith("mutants"):
            raise error
        return honest(challenge, code)

    assert problems(challenge, grade) == [f"mutants/wrong.py: {error.message}"]


def test_an_unreadable_challenge_is_one_problem():
    """With the place that is wrong, said once."""
    assert unreadable_challenge("t/x", Unreadable("no key", "", "a.toml:3")).problems == (
        "a.toml:3: no key",
    )
    assert unreadable_challenge("t/x", Unreadable("a.toml: no", "", "a.toml")).problems == (
        "a.toml: no",
    )


def test_missing_heading(challenge):
    """Notes say why, how one finds it, and where it was seen."""
    Path(challenge.notes).write_text("## Why it is wrong\n\n## How one finds it\n")
    assert problems(challenge) == ['notes.md: the heading "Where it comes from" is missing']


@pytest.mark.parametrize(
    ("hint", "quoted"),
    [
        ("Try `return x * scale` there.", "return x * scale"),
        ("Try return x*scale there.", "return x * scale"),
        ("Try\n  return  x *\n scale", "return x * scale"),
        ("Is scale a root or its inverse?", ""),
        ("return x / scale is what stands there.", ""),
    ],
)
def test_hints_that_quote_the_fix(challenge, hint, quoted):
    """Whatever the spaces; the broken line itself may be quoted."""
    assert quotes_fix(hint, SHIPPED, SOLUTION) == quoted
    found = problems(replace(challenge, hints=("a", hint, "c")))
    assert found == ([f"challenge.toml: hint 2 quotes the fix: {quoted}"] if quoted else [])


def test_short_lines_may_be_said():
    """A word that is a line of the fix is no secret."""
    assert quotes_fix("use else: here", "a\n", "a\nelse:\n") == ""


def test_cases_are_all_files(challenge):
    """Every file once, under the name that problems use."""
    shown = [case.code.file for case in challenge_files(challenge)]
    assert shown == ["buggy.py", "solution.py", "alternatives/other.py", "mutants/wrong.py"]


def test_a_reference_that_is_none_is_told_once(challenge):
    """Not once for each file that cannot be graded without it."""
    wrong = replace(challenge, reference="MultiHeadSelfAttenton")
    (only,) = problems(wrong)
    assert only.startswith(
        'challenge.toml: reference = "MultiHeadSelfAttenton", which does not exist'
    )
    assert "Did you mean MultiHeadSelfAttention" in only
    assert problems(replace(challenge, reference="MultiHeadSelfAttention")) == []


def test_checks_that_there_are_not_are_told(challenge):
    """Those that are expected, and those that show which bug is gone."""
    bugs = (Bug(id="sharp", checks=("matches-refrence",)), Bug(id="other", checks=("reach",)))
    found = problems(replace(challenge, expected=("matches-reference", "reech"), bugs=bugs))
    told = [text for text in found if "is not a check" in text]
    one, two = told
    assert one == "challenge.toml: expected names reech, which is not a check. Did you mean reach?"
    assert two.startswith(
        "challenge.toml: [[bugs]] sharp names matches-refrence, which is not a check"
    )


def test_a_check_that_was_renamed_is_named(challenge):
    """The old id of a part leads to its check."""
    found = problems(replace(challenge, expected=("edge-shapes",)))
    assert next(f for f in found if "is not a check" in f).endswith(
        "edge-shapes, which is not a check. It is called matches-reference now."
    )
