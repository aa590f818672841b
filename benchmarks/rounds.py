"""CPU of grading programs in a warm worker. Run: .venv/bin/python -m benchmarks.rounds [NAME ...]

For each program: its round as given (rejected, no goals), the round with one bug left, the right
program without and with its goals, and which bugs are gone told by subsets. CPU of judge and
children for one job, the least and the median of several. `attnlab check NAME` times itself.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from attnlab.catalogue.load import load
from attnlab.catalogue.programs import compose, read_program
from attnlab.records import Limits
from attnlab.records.program import Files, Program, ProgramJob
from attnlab.worker.client import Worker
from benchmarks.grading import ticks

TIMES = 5
REJECTED, PASSED = 0.5, 6.0  # seconds of CPU


def main(names: list[str]) -> int:
    table = Table("program", "grade", "CPU s, least", "median", "wall s", "limit")
    over = False
    with Worker() as worker:
        for entry in load().programs:
            if names and entry.name not in names:
                continue
            program = read_program(Path(entry.folder))
            for name, files, stages, limit in _cases(program):
                job = ProgramJob(
                    program=program,
                    files=files,
                    label=program.name,
                    stages=stages,
                    bugs=program.chosen,
                    limits=Limits(seconds=60),
                )
                least, usual, wall = _seconds(worker, job)
                over |= limit > 0 and least > limit
                row = (f"{least:.2f}", f"{usual:.2f}", f"{wall:.2f}", f"{limit or ''}")
                table.add_row(program.name, name, *row)
    Console().print(table)
    return int(over)


def _cases(program: Program) -> list[tuple[str, Files, tuple[str, ...], float]]:
    bugs = [bug for bug in program.chosen if not program.patches[bug].decoy]
    return [
        ("the round as given", compose(program, program.chosen), ("grade",), REJECTED),
        ("one bug left", compose(program, bugs[:1]), ("grade",), REJECTED),
        ("the right program, no goals", program.files, ("grade",), 0),
        ("the right program, with goals", program.files, ("grade", "goals"), PASSED),
        ("which bugs are gone", compose(program, bugs[:2]), ("grade", "bugs"), 0),
        ("a training run", program.files, ("train",), 0),
    ]


def _seconds(worker: Worker, job: ProgramJob) -> tuple[float, float, float]:
    """CPU of a job, the least and the median of several, and the median of its wall time."""
    worker.run_program(job)
    found, walls = [], []
    for _ in range(TIMES):
        before, began = ticks(worker), time.perf_counter()
        worker.run_program(job)
        walls.append(time.perf_counter() - began)
        found.append((ticks(worker) - before) / os.sysconf("SC_CLK_TCK"))
    return min(found), statistics.median(found), statistics.median(walls)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
