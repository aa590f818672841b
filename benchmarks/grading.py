"""CPU of `attnlab grade`, cold and warm. Run: .venv/bin/python benchmarks/grading.py

Cold: user CPU of the command with all its processes (worker, judge, child), beside the user CPU of
`python -c "import torch"`, in turns; medians of the times and of the ratios. Warm: CPU of the judge
and its children for one job of a worker that is up, the least of several batches.
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

from attnlab.catalogue import load
from attnlab.target import challenge_job
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
WARM = {  # name -> challenge, whether the shipped file, the most milliseconds
    "a full grade of the solution": ("crash-at-out-proj", False, 100),
    "the first failing verdict: a crash": ("crash-at-out-proj", True, 30),
    "the first failing verdict: a leak": ("peeks-ahead", True, 30),
    "the first failing verdict: a layout": ("heads-in-a-blender", True, 30),
    "the first failing verdict: wrong values": ("too-sharp", True, 30),
}


def main() -> int:
    return max(cold(), warm())


def warm() -> int:
    table = Table("in a warm worker", "CPU ms", "limit")
    over = 0
    with Worker() as worker:
        for name, (slug, shipped, limit) in WARM.items():
            found = milliseconds(worker, slug, shipped)
            over |= found > limit
            table.add_row(name, f"{found:.0f}", f"{limit}")
    Console().print(table)
    return int(over)


def milliseconds(worker: Worker, slug: str, shipped: bool) -> float:
    """CPU of a job in the judge and its children, as the zygote that waits for them is told."""
    challenge = load().find(slug)
    path = Path(challenge.file if shipped else challenge.solution)
    job = challenge_job(challenge, path, stages=("check",))
    job = replace(job, until="verdict" if shipped else "end")
    worker.inspect(job)
    batches = []
    for _ in range(BATCHES):
        before = ticks(worker)
        for _ in range(JOBS):
            worker.inspect(job)
        batches.append((ticks(worker) - before) / JOBS)
    return min(batches) * 1000 / os.sysconf("SC_CLK_TCK")


def ticks(worker: Worker) -> int:
    """User and system time of a worker's processes, those that are alive and those that ended."""
    total, todo = 0, [worker.process.pid]
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
