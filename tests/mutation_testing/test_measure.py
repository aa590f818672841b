"""Measuring the grader: which mutants count as killed, as equivalent, as survivors."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from attnlab.catalogue.load import read_challenge
from attnlab.errors import Broken
from attnlab.mutation_testing.measure import SHIPPED
from attnlab.mutation_testing.measure_file import FileVersionGrader, bugs
from attnlab.mutation_testing.operators.base import mutants
from attnlab.records import CheckResult, Report
from attnlab.records.trial import TrialReport, TrialResult

FOLDER = Path(__file__).parents[2] / "challenges" / "attention" / "peeks-ahead"
PASSED = Report(outcome="ok", checks=(CheckResult(id="finite", title="", outcome="passed"),))
FAILED = Report(
    outcome="ok",
    checks=(CheckResult(id="causality", title="", outcome="failed", message="it leaks"),),
)
FAULT = Report(
    outcome="ok",
    checks=(CheckResult(id="reach", title="", outcome="error", reason="internal", message="oops"),),
)


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """A handful of operators are as good as all to see what becomes of their mutants."""
    some = ("softmax-axis", "mask-diagonal", "transposed-axes", "name-mixed-up")
    monkeypatch.setattr(
        "attnlab.mutation_testing.measure_file.mutants", lambda text: mutants(text, *some)
    )


class FakeLab:
    """A grader that says of a source what `says` says, and of a difference what `differs` says."""

    def __init__(self, says, differs=lambda text: "", alone=None):
        self.says, self.differs, self.alone = says, differs, alone or says
        self.asked = []

    def run_job(self, job):
        self.asked.append(job.candidate.text)
        return self.alone(job.candidate.text, job.seed)

    def trials(self, job):
        found = []
        for code in job.candidates:
            reports = tuple(self.says(code.text, seed) for seed in job.seeds)
            found.append(TrialResult(reports=reports, difference=self.differs(code.text)))
        return TrialReport(results=tuple(found))


@pytest.fixture(scope="module")
def challenge():
    return read_challenge(FOLDER)


@pytest.fixture(scope="module")
def right(challenge):
    paths = (challenge.solution, *challenge.alternatives)
    return {Path(path).read_text(encoding="utf-8") for path in paths}


def measured(challenge, lab, seeds=(0,)):
    with ThreadPoolExecutor(2) as pool:
        return FileVersionGrader(challenge, lab, seeds).measure(pool, 100)


def test_a_grader_that_rejects_all_but_the_right_files_is_good(challenge, right):
    """Every mutant killed, with what killed it; nothing wrongly rejected."""
    lab = FakeLab(lambda text, seed: PASSED if text in right else FAILED)
    found = measured(challenge, lab)
    assert found.good
    assert found.right == len(right)
    assert found.count("killed") == len(found.trials) > 50
    assert {trial.reason for trial in found.trials} == {"causality: it leaks"}


def test_a_grader_that_passes_everything_lets_survivors_through(challenge):
    """What passes and differs has survived, and is graded once more before that is said."""
    lab = FakeLab(lambda text, seed: PASSED, lambda text: "output differs" * ("tril" in text))
    found = measured(challenge, lab)
    assert not found.good
    survivors = [t for t in found.trials if t.fate == "survived"]
    assert survivors
    assert {t.reason for t in survivors} == {"output differs"}
    assert found.count("equivalent") == len(found.trials) - len(survivors) > 0
    assert len(lab.asked) == len(survivors) + found.right


def test_a_survivor_that_the_real_grade_rejects_is_killed(challenge, right):
    """In a process of its own a candidate cannot lean on what others left behind."""
    lab = FakeLab(
        lambda text, seed: PASSED,
        lambda text: "differs",
        alone=lambda text, seed: PASSED if text in right else FAILED,
    )
    found = measured(challenge, lab)
    assert found.count("killed") == len(found.trials)


def test_a_right_file_that_is_rejected_is_told(challenge):
    """Each false reject is one line with its file, its reason and the seed."""
    found = measured(challenge, FakeLab(lambda text, seed: FAILED), seeds=(0, 1))
    assert not found.good
    assert len(found.wrongs) == 2 * found.right
    assert "solution.py: causality: it leaks (seed 1)" in found.wrongs


def test_a_verdict_that_another_seed_turns_over_is_a_flip(challenge, right):
    """Seeds decide nothing: a file passes under all of them or under none."""
    lab = FakeLab(lambda text, seed: PASSED if text in right or seed == 1 else FAILED)
    found = measured(challenge, lab, seeds=(0, 1))
    assert found.flips == len(found.trials)
    assert not found.good


def test_a_fault_of_the_grader_is_no_kill_to_be_proud_of(challenge, right):
    """A check that breaks on a mutant rejects it, and must be mended all the same."""
    lab = FakeLab(lambda text, seed: PASSED if text in right else FAULT)
    found = measured(challenge, lab)
    assert len(found.wrongs) == len(found.trials)
    assert not found.good


def test_a_mutant_that_takes_the_worker_down_costs_no_other(challenge, right):
    """The others are tried one by one; it is graded alone, and what passes then got past."""

    class Fragile(FakeLab):
        def trials(self, job):
            if any("dim=-2" in code.text for code in job.candidates):
                raise Broken("the worker ended before its answer")
            return super().trials(job)

    for alone, fate in ((FAILED, "killed"), (PASSED, "survived")):

        def says(text, seed, alone=alone):
            return PASSED if text in right else alone

        found = measured(challenge, Fragile(lambda text, seed: FAILED, alone=says))
        fates = {trial.fate for trial in found.trials if "dim=-2" in trial.after}
        assert fates == {fate}
        assert {trial.fate for trial in found.trials if "dim=-2" not in trial.after} == {"killed"}
        assert found.good is (fate == "killed")


def test_a_worker_that_always_dies_is_told(challenge, right):
    """The run goes on to its end, and does not end well."""

    class Dying(FakeLab):
        def trials(self, job):
            raise Broken("the worker ended before its answer")

    found = measured(challenge, Dying(lambda text, seed: PASSED))
    assert not found.good
    assert "the worker ended before its answer" in found.wrongs[0]


def test_shipped_mutants_are_tried_too_and_nothing_is_tried_twice(challenge):
    """The same change of the same line in two bases is one bug."""
    found = list(bugs(challenge))
    assert sum(bug.mutant.mutation == SHIPPED for bug in found) == len(challenge.mutants)
    made = [(b.mutant.mutation, b.mutant.before, b.mutant.after) for b in found]
    generated = [change for change in made if change[0] != SHIPPED]
    assert len(set(generated)) == len(generated)
    assert {bug.file for bug in found} >= {"solution.py", "alternatives/kernel_flag.py"}
