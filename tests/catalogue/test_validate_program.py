"""Which cases of a program are graded, and what is said of those that come out otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnlab.catalogue.programs import read_program
from attnlab.catalogue.validate_program import program_cases, validate_program
from attnlab.records.program import ProgramReport

FOLDER = Path(__file__).parents[2] / "challenges" / "programs" / "trainer-lm"
FAILED, PASSED = ProgramReport(outcome="failed"), ProgramReport(outcome="passed")


@pytest.fixture(scope="module")
def program():
    return read_program(FOLDER)


def as_it_should_be(program, case):
    return FAILED if case.wrong else PASSED


def together(program, cases):
    return [as_it_should_be(program, case) for case in cases]


def test_what_is_as_it_should_be_together_is_not_graded_again(program):
    """Only programs that train, stages and the round are graded one by one; other fixes of
    different places are made at once."""
    graded, tried = [], []

    def grade(program, case):
        graded.append(case.name)
        return as_it_should_be(program, case)

    def try_many(program, cases):
        tried.extend(cases)
        return together(program, cases)

    found = validate_program(program, grade, try_many)
    cases = list(program_cases(program))
    assert graded == [case.name for case in cases if case.needs_process]
    fixes = [case for case in cases if case.role == "fix"]
    assert len([case for case in tried if case.role == "fix"]) < len(fixes) / 3
    assert found.counts[0] == "{0}/{0}".format(sum(case.wrong for case in cases))
    assert found.problems == ()


def test_a_wrong_fix_is_found_among_those_made_at_once(program):
    """The fixes that were made with it are graded alone, and are right."""
    wrong = next(case for case in program_cases(program) if case.role == "fix")

    def grade(program, case):
        return FAILED if case.wrong or case.name == wrong.name else PASSED

    def holds(case):
        return all(edit.new in case.files[edit.file] for edit in wrong.edits)

    def try_many(program, cases):
        return [FAILED if case.wrong or holds(case) else PASSED for case in cases]

    found = validate_program(program, grade, try_many)
    assert [text.partition(":")[0] for text in found.problems] == [wrong.name]


@pytest.mark.parametrize("answers", [True, False], ids=["a pass", "no answer"])
def test_what_is_not_rejected_together_is_graded_alone(program, answers):
    """Only what a process of its own says is told as a problem."""
    got_past = next(case for case in program_cases(program) if case.role == "several")

    def try_many(program, cases):
        passed = [PASSED if case.name == got_past.name else None for case in cases]
        return passed if answers else []

    def grade(program, case):
        return PASSED if case.name == got_past.name else as_it_should_be(program, case)

    found = validate_program(program, grade, try_many)
    assert found.problems == (f"{got_past.name}: must be rejected, came out passed",)
