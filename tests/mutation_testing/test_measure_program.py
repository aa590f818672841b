"""Measuring the grader on whole programs: what is tried, and what becomes of it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from attnlab.catalogue.programs import read_program
from attnlab.catalogue.validate_program import program_cases
from attnlab.errors import Broken
from attnlab.mutation_testing.measure import SHIPPED
from attnlab.mutation_testing.measure_program import ProgramVersionGrader, program_bugs
from attnlab.mutation_testing.operators.base import mutants
from attnlab.records.program import PartResult, ProgramReport
from attnlab.records.trial import ProgramTrialReport, TrialResult

FOLDER = Path(__file__).parents[2] / "challenges" / "programs" / "char-gpt"
PASSED = ProgramReport(outcome="passed")
FAILED = ProgramReport(
    outcome="failed",
    parts=(PartResult(id="training", title="", outcome="failed", message="the loss is off"),),
)


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """A handful of operators are as good as all to see what becomes of their mutants."""
    some = ("update-out-of-place", "mode-exchanged", "softmax-axis", "rounds-of-a-loop")
    monkeypatch.setattr(
        "attnlab.mutation_testing.measure_program.mutants", lambda text: mutants(text, *some)
    )


@pytest.fixture(scope="module")
def program():
    return read_program(FOLDER)


class FakeWorker:
    """Passes the right versions; of another one it says what `says` says of its files."""

    def __init__(self, program, says=lambda files: (FAILED, ""), alone=PASSED):
        self.right = [case.files for case in program_cases(program) if not case.wrong]
        self.says, self.alone = says, alone
        self.goals = 0

    def run_program(self, job):
        self.goals += "goals" in job.stages
        return PASSED if job.files in self.right else self.alone

    def program_trials(self, job):
        found = []
        for files in job.candidates:
            report, difference = self.says(files)
            reports = (report,) * len(job.seeds)
            found.append(TrialResult(reports=reports, difference=difference))
        return ProgramTrialReport(results=tuple(found))


def measured(program, worker, seeds=(0,), percent=100):
    with ThreadPoolExecutor(2) as pool:
        return ProgramVersionGrader(program, worker, seeds).measure(pool, percent)


def test_a_grader_that_rejects_every_bug_is_good(program):
    """The bugs that are shipped are tried with those that are made; a trial names its file."""
    found = measured(program, FakeWorker(program))
    assert found.good
    assert found.shipped == len(program.bugs)
    assert found.count("killed") == len(found.trials)
    assert {trial.base for trial in found.trials} == set(program.edit)
    assert {trial.reason for trial in found.trials} == {"training: the loss is off"}
    assert found.right > len(program.decoys) + 1


def test_what_differs_and_passes_with_its_goals_has_survived(program):
    """It is graded once more in a process of its own; what differs in nothing is equivalent."""
    worker = FakeWorker(
        program, lambda files: (PASSED, "the loss differs" * ("softmax(dim=0)" in str(files)))
    )
    found = measured(program, worker)
    survivors = [t for t in found.trials if t.fate == "survived"]
    assert {t.reason for t in survivors} == {"the loss differs"}
    assert found.count("equivalent") == len(found.trials) - len(survivors)
    assert worker.goals == len(survivors) > 0
    rejecting = FakeWorker(program, lambda files: (PASSED, "the loss differs"), alone=FAILED)
    assert measured(program, rejecting).count("survived") == 0


def test_a_right_version_that_is_rejected_is_told(program):
    """Base, styles, decoys and other fixes; the line says which, why and under which seed."""
    worker = FakeWorker(program, alone=FAILED)
    decoy = next(case for case in program_cases(program) if case.role == "decoy")
    worker.right = [files for files in worker.right if files != decoy.files]
    found = measured(program, worker, seeds=(0, 1))
    assert found.wrongs == tuple(
        f"{decoy.name}: training: the loss is off (seed {seed})" for seed in (0, 1)
    )


def test_a_mutant_that_takes_the_worker_down_costs_no_other(program):
    """The others are tried one by one."""

    class Fragile(FakeWorker):
        def program_trials(self, job):
            if any("dim=-2" in str(files) for files in job.candidates):
                raise Broken("the worker ended before its answer")
            return super().program_trials(job)

    found = measured(program, Fragile(program))
    ended = [t for t in found.trials if t.fate == "survived"]
    assert ended
    assert all("dim=-2" in t.after or t.mutation == SHIPPED for t in ended)
    assert not found.good


def test_a_sample_is_the_same_each_time_and_keeps_the_shipped_bugs(program):
    """CI tries a share of the mutants."""
    whole = [one.mutant for one in program_bugs(program)]
    first, again = (measured(program, FakeWorker(program), percent=30) for _ in range(2))
    assert first.trials == again.trials
    assert first.shipped == len(program.bugs)
    assert len(program.bugs) < len(first.trials) < len(whole)
    made = {(m.mutation, m.line, m.after) for m in whole}
    assert {(t.mutation, t.line, t.after) for t in first.trials} <= made


def test_what_only_a_script_calls_is_not_mutated(program):
    """`main` is called under the guard alone: nothing of it is graded."""
    text = program.files["train.py"]
    first = text[: text.index("def main()")].count("\n") + 1
    assert all(m.mutant.line < first for m in program_bugs(program) if m.file == "train.py")
