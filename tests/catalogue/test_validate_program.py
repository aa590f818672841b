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


def test_what_is_rejected_together_is_not_graded_again(program):
    """Choices of several bugs are most of the cases; all others are graded one by one."""
    graded = []

    def grade(program, case):
        graded.append(case.role)
        return as_it_should_be(program, case)

    found = validate_program(program, grade, 1, lambda _, many: [FAILED] * len(many))
    cases = list(program_cases(program))
    assert graded == [case.role for case in cases if case.role != "several"]
    assert found.counts[0] == "{0}/{0}".format(sum(case.wrong for case in cases))
    assert found.problems == ()


@pytest.mark.parametrize("answers", [True, False], ids=["a pass", "no answer"])
def test_what_is_not_rejected_together_is_graded_alone(program, answers):
    """Only what a process of its own says is told as a problem."""
    got_past = next(case for case in program_cases(program) if case.role == "several")

    def try_many(program, many):
        return [PASSED if one == got_past.files else FAILED for one in many] if answers else []

    def grade(program, case):
        return PASSED if case.name == got_past.name else as_it_should_be(program, case)

    found = validate_program(program, grade, 1, try_many)
    assert found.problems == (f"{got_past.name}: must be rejected, came out passed",)
