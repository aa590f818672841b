"""One worker for all tests of this folder: importing torch is the wait."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from attacks import HONEST

from attnlab.catalogue.load import read_challenge
from attnlab.records import Challenge, Code, Job, Limits, Report, Verdict
from attnlab.target.challenge_job import challenge_job
from attnlab.verdict import make_verdict
from attnlab.worker.client import Worker

FOLDER = Path(__file__).parents[2] / "challenges/attention/too-sharp"
FILE = "candidate.py"


class Grader:
    """Grades sources against attention/too-sharp in one worker."""

    def __init__(self, worker: Worker, challenge: Challenge) -> None:
        self.worker = worker
        self.challenge = challenge
        self.plain = challenge_job(challenge, Path(challenge.solution))

    def job(self, source: str, seconds: float = 10.0, **more) -> Job:
        code = Code(file=FILE, text=source, name=self.challenge.class_name)
        more = {"stages": ("check",), **more}
        return replace(self.plain, candidate=code, limits=Limits(seconds=seconds), **more)

    def run_job(self, source: str, seconds: float = 10.0, **more) -> Report:
        return self.worker.run_job(self.job(source, seconds, **more))

    def grade(self, source: str, seconds: float = 10.0, **more) -> Verdict:
        return make_verdict(self.challenge, FILE, self.run_job(source, seconds, **more))

    def still_serves(self) -> None:
        """The next honest job, cheaply."""
        report = self.run_job(HONEST, stages=("trace",))
        assert report.outcome == "ok", report.message
        assert report.trace.ops[-1].shape == (2, 9, 64)


@pytest.fixture(scope="session")
def grader():
    with Worker() as worker:
        yield Grader(worker, read_challenge(FOLDER))
