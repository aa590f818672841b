"""Grades a second through two workers at once: right files, then wrong ones up to the first
failure. Run by benchmarks.latency, whose environment says whether the workers are warm."""

import time
from dataclasses import replace
from pathlib import Path
from threading import Thread

from attnlab.catalogue.load import load
from attnlab.target.challenge_job import challenge_job
from attnlab.worker.client import Worker

SECONDS = 6.0


def measure(path: str, outcome: str) -> float:
    challenge = load().find("too-sharp")
    job = challenge_job(challenge, Path(getattr(challenge, path)), stages=("check",))
    job = replace(job, until="reason")
    done = [0, 0]

    def grade(slot: int) -> None:
        with Worker() as worker:
            worker.run_job(job)
            ready.append(slot)
            while len(ready) < 2:
                time.sleep(0.01)
            until = time.monotonic() + SECONDS
            while time.monotonic() < until:
                report = worker.run_job(job)
                failed = any(check.outcome == "failed" for check in report.checks)
                assert ("failed" if failed else "passed") == outcome, report
                done[slot] += 1

    ready: list[int] = []
    threads = [Thread(target=grade, args=[slot]) for slot in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done) / SECONDS


if __name__ == "__main__":
    print(measure("solution", "passed"), measure("file", "failed"))
