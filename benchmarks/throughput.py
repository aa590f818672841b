"""Grades a second through two workers at once: right files, then wrong ones up to the first
failure; and the megabytes of the warm judge, alone and while it serves eight commands. Run by
benchmarks.latency, whose environment says where the judge is."""

import time
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread

from attnlab.catalogue.load import load
from attnlab.target.challenge_job import challenge_job
from attnlab.worker.client import Worker
from attnlab.worker.warm_start import ask_servers

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


def memory() -> float:
    """Megabytes of the judge and all that serves commands now; shared pages count once."""
    family = [next(iter(ask_servers("status"))).pid]
    found = 0
    for pid in family:
        with suppress(OSError):  # it has just ended
            family += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            found += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return found / 1000


def measure_memory() -> tuple[float, float]:
    """Alone, and the most that eight commands took at once."""
    challenge = load().find("too-sharp")
    job = challenge_job(challenge, Path(challenge.solution), stages=("check",))
    time.sleep(1.0)
    alone = memory()
    with ExitStack() as stack:
        workers = [stack.enter_context(Worker()) for _ in range(8)]
        threads = [Thread(target=worker.run_job, args=[job]) for worker in workers]
        for thread in threads:
            thread.start()
        most = alone
        while any(thread.is_alive() for thread in threads):
            most = max(most, memory())
    return alone, most


if __name__ == "__main__":
    print(measure("solution", "passed"), measure("file", "failed"), *measure_memory())
