"""attnlab check --strength: what is measured, what is written, how it ends."""

from __future__ import annotations

import pytest
from sample_records import check

from attnlab.mutation_testing.operators.base import mutants
from attnlab.records import Report
from attnlab.records.trial import TrialReport, TrialResult

SLUG = "attention/peeks-ahead"
GOOD = Report(outcome="ok", checks=(check("finite", "passed"),))
BAD = Report(outcome="ok", checks=(check("causality", "failed", "it leaks"),))


class FakeWorkerPool:
    """Passes every right file; of mutants it says what `says` says."""

    says = TrialResult(reports=(BAD,))

    def __init__(self, size):
        self.size = size

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None

    def run_job(self, job):
        return GOOD

    def trials(self, job):
        return TrialReport(results=(self.says,) * len(job.candidates))


@pytest.fixture(autouse=True)
def worker_pool(monkeypatch):
    monkeypatch.setattr("attnlab.worker.client.WorkerPool", FakeWorkerPool)
    monkeypatch.setattr(
        "attnlab.mutation_testing.measure_file.mutants", lambda text: mutants(text, "softmax-axis")
    )
    monkeypatch.setattr(FakeWorkerPool, "says", TrialResult(reports=(BAD,)))
    return FakeWorkerPool


def test_a_strong_grader_exits_0_and_its_table_is_written(shell, tmp_path):
    """The page for docs/ comes from the same run as what is shown."""
    table = tmp_path / "strength.md"
    said = shell("check", "--strength", "peeks-ahead", "--table", str(table))
    assert said.code == 0
    assert "bugs killed (100.00%)" in said.out
    assert f"measured 1 of 1: {SLUG}, " in said.err
    assert " killed, 0 of " in said.err
    assert f"| {SLUG} |" in table.read_text(encoding="utf-8")


def test_a_survivor_exits_1_and_is_in_the_document(shell, worker_pool, monkeypatch):
    """Scripts and CI see that a bug got past the checks, and which."""
    monkeypatch.setattr(
        worker_pool, "says", TrialResult(reports=(GOOD,), difference="output differs by 1")
    )
    said = shell("check", "--strength", "peeks-ahead", "--json")
    assert said.code == 1
    assert said.json["outcome"] == "found"
    assert said.json["survivors"][0]["challenge"] == SLUG
    assert said.json["survivors"][0]["reason"] == "output differs by 1"
    assert ".py:" in said.err.partition("flips\n  ")[2]


def test_without_the_flag_nothing_is_measured(shell):
    """--help names the flags; a number of seeds must be one."""
    assert "--strength" in shell("check", "--help").out
    assert shell("check", "--strength", "--seeds", "0").code == 2
