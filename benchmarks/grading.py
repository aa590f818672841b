"""CPU of `attnlab grade`, cold and warm. Run: .venv/bin/python benchmarks/grading.py

Cold: user CPU of the command with all its processes (worker, judge, child), beside the user CPU of
`python -c "import torch"`, in turns; medians of the times and of the ratios. Warm: CPU of the judge
and its children for one job of a worker that is up, the least and the median of several batches; a
verdict alone, and a verdict with the look at what explains it that `attnlab grade` takes.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from attnlab.catalogue.load import load
from attnlab.records import Until
from attnlab.target.challenge_job import challenge_job
from attnlab.worker.client import Worker

ROUNDS, LIMIT = 7, 1.5
ATTNLAB = [sys.executable, "-m", "attnlab"]
LINES = {
    "import torch": [sys.executable, "-c", "import torch"],
    "attnlab grade (fails)": [*ATTNLAB, "grade", "crash-at-out-proj"],
    "attnlab grade (wrong values)": [*ATTNLAB, "grade", "too-sharp"],
    "attnlab run": [*ATTNLAB, "run", "crash-at-out-proj"],
}

BATCHES, JOBS = 5, 8
CRASH, LEAK = "crash-at-out-proj", "peeks-ahead"
LAYOUT, VALUES = "heads-in-a-blender", "too-sharp"
WARM: dict[str, tuple[str, Until | None, int]] = {  # None: the solution, at full length
    "a full grade of the solution": (CRASH, None, 100),
    "the first failing verdict: a crash": (CRASH, "verdict", 30),
    "the first failing verdict: a leak": (LEAK, "verdict", 30),
    "the first failing verdict: a layout": (LAYOUT, "verdict", 30),
    "the first failing verdict: wrong values": (VALUES, "verdict", 30),
    "and what explains it: a leak": (LEAK, "reason", 0),
    "and what explains it: a layout": (LAYOUT, "reason", 0),
    "and that nothing does: wrong values": (VALUES, "reason", 0),
}


def main() -> int:
    os.environ["ATTNLAB_SERVER"] = "0"  # the processes of the worker itself are counted
    return max(cold(), warm())


def warm() -> int:
    table = Table("in a warm worker", "CPU ms, least", "median", "limit")
    over = 0
    with Worker() as worker:
        for name, (slug, until, limit) in WARM.items():
            least, usual = milliseconds(worker, slug, until)
            over |= limit > 0 and least > limit
            table.add_row(name, f"{least:.0f}", f"{usual:.0f}", f"{limit or ''}")
    Console().print(table)
    return int(over)


def milliseconds(worker: Worker, slug: str, until: Until | None) -> tuple[float, float]:
    """CPU of a job in the judge and its children, as the zygote that waits for them is told: the
    least of several batches, and the median."""
    challenge = load().find(slug)
    path = Path(challenge.file if until else challenge.solution)
    job = replace(challenge_job(challenge, path, stages=("check",)), until=until or "end")
    worker.run_job(job)
    batches = []
    for _ in range(BATCHES):
        before = ticks(worker)
        for _ in range(JOBS):
            worker.run_job(job)
        batches.append((ticks(worker) - before) / JOBS * 1000 / os.sysconf("SC_CLK_TCK"))
    return min(batches), statistics.median(batches)


def ticks(worker: Worker) -> int:
    """User and system time of a worker's processes, those that are alive and those that ended."""
    total, todo = 0, [worker.connection.process.pid]
    while todo:
        pid = todo.pop()
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += sum(map(int, fields[11:15]))
        todo += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    return total


def cold() -> int:
    times: dict[str, list[float]] = {name: [] for name in LINES}
    with tempfile.TemporaryDirectory() as home:
        for _ in range(ROUNDS):
            for name, command in LINES.items():
                times[name].append(user_cpu(command, home))
    base = times["import torch"]
    table = Table("command", "user CPU s", "x import torch", "limit")
    worst = 0.0
    for name, found in times.items():
        ratio = statistics.median(a / b for a, b in zip(found, base, strict=True))
        worst = max(worst, ratio if "grade" in name else 0.0)
        limit = f"{LIMIT:g}" if "grade" in name else ""
        table.add_row(name, f"{statistics.median(found):.2f}", f"{ratio:.2f}", limit)
    Console().print(table)
    return int(worst > LIMIT)


def user_cpu(command: list[str], home: str) -> float:
    """User seconds of a command and of all the processes it waited for."""
    before = os.times().children_user
    subprocess.run(
        command,
        env={**os.environ, "ATTNLAB_HOME": home},
        cwd=home,
        capture_output=True,
        check=False,
    )
    return os.times().children_user - before


if __name__ == "__main__":
    sys.exit(main())
