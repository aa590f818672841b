"""Grades a second through two workers at once: right files; wrong ones up to the first failure;
and wrong ones with the checks that tell its reason, as `attnlab grade` runs them. And the megabytes
of bare torch, of the warm judge, and of it while it serves eight commands. Run by
benchmarks.latency, whose environment says where the judge is.

Memory is what the processes would take on a machine of their own: their private and forked pages,
each counted once, and the pages of files that the one with most of them has read. `Pss` of file
pages would depend on who else runs torch: a bare process beside the judge seems small."""

import re
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread

from attnlab.catalogue.load import load
from attnlab.records.job import Until
from attnlab.target.challenge_job import challenge_job
from attnlab.worker.client import Worker
from attnlab.worker.warm_start import ask_servers

SECONDS = 6.0
HOLD = "import torch; print(torch.nn.Linear(4, 4)(torch.zeros(1, 4)), flush=True); open(0).read()"


def measure(path: str, outcome: str, until: Until) -> float:
    challenge = load().find("too-sharp")
    job = challenge_job(challenge, Path(getattr(challenge, path)), stages=("check",))
    job = replace(job, until=until)
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


def memory(pid: int) -> float:
    """Megabytes of a process and its descendants now."""
    family, own, files = [pid], 0, [0]
    for member in family:
        with suppress(OSError):  # it has just ended
            family += map(int, Path(f"/proc/{member}/task/{member}/children").read_text().split())
            told = Path(f"/proc/{member}/smaps_rollup").read_text()
            size = {
                name: int(kb) for name, kb in re.findall(r"^(\w+): +(\d+) kB", told, re.MULTILINE)
            }
            own += size["Pss_Anon"]
            files.append(size["Rss"] - size["Anonymous"])
    return (own + max(files)) / 1000


def measure_bare_torch() -> float:
    """Of a process that has imported torch and called one layer."""
    bare = subprocess.Popen(
        [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert bare.stdout is not None
    bare.stdout.readline()
    found = memory(bare.pid)
    bare.communicate()
    return found


def measure_memory() -> tuple[float, float]:
    """Alone, and the most that eight commands took at once."""
    challenge = load().find("too-sharp")
    job = challenge_job(challenge, Path(challenge.solution), stages=("check",))
    time.sleep(1.0)
    judge = next(iter(ask_servers("status"))).pid
    alone = memory(judge)
    with ExitStack() as stack:
        workers = [stack.enter_context(Worker()) for _ in range(8)]
        threads = [Thread(target=worker.run_job, args=[job]) for worker in workers]
        for thread in threads:
            thread.start()
        most = alone
        while any(thread.is_alive() for thread in threads):
            most = max(most, memory(judge))
    return alone, most


if __name__ == "__main__":
    rates = (
        measure("solution", "passed", "reason"),
        measure("file", "failed", "verdict"),
        measure("file", "failed", "reason"),
    )
    print(*rates, measure_bare_torch(), *measure_memory())
