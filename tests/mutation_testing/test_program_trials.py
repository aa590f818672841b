"""Trying many mutants of a program in one process."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnlab.catalogue.programs import compose, read_program
from attnlab.mutation_testing.measure_program import grade_job
from attnlab.records.trial import ProgramTrialJob

FOLDER = Path(__file__).parents[2] / "challenges" / "programs" / "char-gpt"


@pytest.fixture(scope="module")
def program():
    return read_program(FOLDER)


def variant(program, file, old, new):
    text = program.files[file]
    assert old in text
    return program.files | {file: text.replace(old, new)}


def test_each_mutant_comes_to_its_own_end(program, worker):
    """Wrong ones are rejected, also one that ends its process; right ones do the same."""
    candidates = (
        program.files,
        variant(program, "train.py", "(step + 1) % EVALUATE_EVERY == 0", "False"),
        compose(program, ["no-zero-grad"]),
        variant(program, "train.py", "    losses = []", "    import os; os._exit(3)"),
        variant(program, "train.py", "return losses", "return losses[:-1]"),
    )
    job = grade_job(program, program.files, 0)
    found = worker.program_trials(ProgramTrialJob(job=job, candidates=candidates))
    alone = ProgramTrialJob(job=job, candidates=candidates[1:3], compare=False)
    graded = worker.program_trials(alone)
    outcomes = [tried.reports[0].outcome for tried in found.results]
    assert outcomes == ["passed", "passed", "failed", "crashed", "failed"]
    assert [tried.difference for tried in found.results[:2]] == ["", ""]
    assert [tried.reports[0].outcome for tried in graded.results] == ["passed", "failed"]
