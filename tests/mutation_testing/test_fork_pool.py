"""Trying many mutants in one process, which some of them end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from attnlab.catalogue.load import read_challenge
from attnlab.errors import Broken
from attnlab.records.trial import TrialJob
from attnlab.target.challenge_job import challenge_job

FOLDER = Path(__file__).parent.parent.parent / "challenges" / "attention" / "peeks-ahead"


@pytest.fixture(scope="module")
def asked():
    challenge = read_challenge(FOLDER)
    job = challenge_job(challenge, Path(challenge.solution), stages=("check",))
    return TrialJob(job=replace(job, until="verdict"), right=(), candidates=(), seconds=20.0)


def variant(asked, old, new):
    text = asked.job.candidate.text
    assert old in text
    return replace(asked.job.candidate, text=text.replace(old, new))


def test_each_candidate_comes_to_its_own_end(asked, worker):
    """A wrong one is rejected, one that ends the process ends only that, a right one passes."""
    candidates = (
        variant(asked, ".tril()", ".triu()"),
        variant(asked, "q = self.heads", "import os; os._exit(3); q = self.heads"),
        variant(asked, "dim=-1", "dim=3"),
        variant(asked, "Causal", "causal"),
    )
    found = worker.trials(replace(asked, candidates=candidates, seeds=(0, 1))).results
    assert [len(tried.reports) for tried in found] == [2, 1, 2, 2]
    outcomes = [{c.outcome for c in tried.reports[0].checks} for tried in found]
    assert "failed" in outcomes[0]
    assert found[1].reports[0].outcome == "crashed"
    assert outcomes[2] <= {"passed", "skipped"}
    assert found[2].difference == ""
    assert {c.reason for c in found[3].reports[0].checks} >= {"crashed"}


def test_one_that_hangs_is_ended(asked, worker):
    """The others are tried all the same."""
    hangs = variant(asked, "q = self.heads", "while True: pass\n        q = self.heads")
    right = variant(asked, "dim=-1", "dim=3")
    job = replace(asked, candidates=(hangs, right), seconds=5.0)
    first, second = worker.trials(job).results
    assert first.reports[0].outcome == "timeout"
    assert second.reports[0].outcome == "ok"


def test_a_right_file_that_is_not_right_is_our_fault(asked, worker):
    """Nothing can be said of mutants where the standard itself cannot run."""
    broken = replace(asked.job.candidate, text="import nothing_of_this_name\n")
    job = replace(asked, right=(broken,), candidates=(asked.job.candidate,))
    with pytest.raises(Broken, match="which is right, raised"):
        worker.trials(job)
