"""CPU of grading programs in a warm worker. Run: .venv/bin/python -m benchmarks.rounds [NAME ...]

`--start` times drawing, writing and starting an interview instead, in this process and as a
command, beside a process that imports torch. `--solve N` draws N rounds by seed, over all programs
in turn: each must pass with its patches undone, and be rejected with any fewer undone. `--learn`
trains every program with each of its bugs alone, and lists those with which it still learns: its
loss is that of the right program's goal, and what is wrong shows elsewhere.

For each program: its round as given (rejected, no goals), the round with one bug left, the right
program without and with its goals, and which bugs are gone, told of places written as they were and
of one written otherwise, which no earlier grade has seen. CPU of judge and children for one job,
the least and the median of several. `attnlab check NAME` times itself.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import chdir
from dataclasses import replace
from itertools import chain, combinations, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

from attnlab.catalogue.load import load
from attnlab.catalogue.patches import apply_edits
from attnlab.catalogue.places import change_alone
from attnlab.catalogue.programs import check_compatible, compose, draw_bugs, read_program
from attnlab.catalogue.rounds import write_round
from attnlab.catalogue.validate import REJECTED as REJECTIONS
from attnlab.errors import Refused
from attnlab.practice.interviews import begin, make_event
from attnlab.progress import Progress
from attnlab.records import Limits
from attnlab.records.program import Files, Program, ProgramJob
from attnlab.target.rounds import GRADE, Stage
from attnlab.worker.client import Worker
from benchmarks.grading import ticks

TIMES = 5
REJECTED, PASSED = 0.5, 6.0  # seconds of CPU
STARTED = 1.0  # second until the clock runs
LEARNERS = 15  # bugs, over all programs, with which a program still learns


def main(names: list[str]) -> int:
    if names[:1] == ["--start"]:
        return time_starts()
    if names[:1] == ["--solve"]:
        return solve_rounds(*map(int, names[1:3]))
    if names[:1] == ["--learn"]:
        return list_learners(names[1:])
    return time_grades(names)


def time_grades(names: list[str]) -> int:
    os.environ["ATTNLAB_SERVER"] = "0"  # the processes of the worker itself are counted
    table = Table("program", "grade", "CPU s, least", "median", "wall s", "limit")
    over = False
    with Worker() as worker:
        for entry in load().programs:
            if names and entry.name not in names:
                continue
            program = read_program(Path(entry.folder))
            for name, files, stages, limit in _cases(program):
                more = [_fixed_otherwise(program)] if "otherwise" in name else []
                jobs = [_grade_job(program, each, stages, more) for each in files]
                least, usual, wall = _seconds(worker, jobs)
                over |= limit > 0 and least > limit
                row = (f"{least:.2f}", f"{usual:.2f}", f"{wall:.2f}", f"{limit or ''}")
                table.add_row(program.name, name, *row)
    Console().print(table)
    return int(over)


def _grade_job(
    program: Program, files: Files, stages: Sequence[Stage], more: Sequence[str]
) -> ProgramJob:
    return ProgramJob(
        program=program,
        files=files,
        label=program.name,
        stages=tuple(stages),
        bugs=(*program.chosen, *more),
        limits=Limits(seconds=60),
    )


def _cases(program: Program) -> list[tuple[str, list[Files], Sequence[Stage], float]]:
    """Each with the files of a first grade, which is not counted, and of those that are."""
    bugs = [bug for bug in program.chosen if not program.patches[bug].decoy]
    given, two = compose(program, program.chosen), compose(program, bugs[:2])
    right, again = [program.files] * (TIMES + 1), TIMES + 1
    otherwise = [
        _write_otherwise(program, _fixed_otherwise(program), number) for number in range(again)
    ]
    return [
        ("the round as given", [given] * again, ("grade",), REJECTED),
        ("what attnlab grade asks of it", [given] * again, GRADE, REJECTED),
        ("one bug left", [compose(program, bugs[:1])] * again, ("grade",), REJECTED),
        ("the right program, no goals", right, ("grade",), 0),
        ("the right program, with goals", right, ("grade", "goals"), PASSED),
        ("two bugs left, which are gone told", [two] * again, GRADE, REJECTED),
        ("one newly fixed, otherwise than known", otherwise, GRADE, REJECTED),
        ("a training run", right, ("train",), 0),
    ]


def _fixed_otherwise(program: Program) -> str:
    """A bug that could stand in the round too, away from its others, with another right fix."""
    for bug in program.bugs:
        ids = (*program.chosen, bug.id)
        if bug.fixes and bug.id not in program.chosen and not _conflicts(program, ids):
            change = change_alone(program, ids, _write_otherwise(program, bug.id, 0), bug.id)
            if change and not change.shared:
                return bug.id
    raise SystemExit(f"{program.name} has no other fix of a bug that its round lacks")


def _conflicts(program: Program, ids: Sequence[str]) -> bool:
    try:
        check_compatible(program, ids)
    except Refused:
        return True
    return not all(
        edit.start == 0 or program.files[edit.file][edit.start - 1] == "\n"
        for edit in program.patches[ids[-1]].fixes[0]
    )


def _write_otherwise(program: Program, bug: str, number: int) -> Files:
    """A round with one bug more, fixed in another way; each number gives another text."""
    fixed = program.patches[bug].fixes[0]
    mine = [replace(edit, new=f"# {number}\n{edit.new}") for edit in fixed]
    given = [edit for bug in program.chosen for edit in program.patches[bug].edits]
    return apply_edits(program.files, [*mine, *given])


def _seconds(worker: Worker, jobs: Sequence[ProgramJob]) -> tuple[float, float, float]:
    """CPU of jobs, the least and the median of all but the first, and the median of wall time."""
    worker.run_program(jobs[0])
    found, walls = [], []
    for job in jobs[1:]:
        before, began = ticks(worker), time.perf_counter()
        worker.run_program(job)
        walls.append(time.perf_counter() - began)
        found.append((ticks(worker) - before) / os.sysconf("SC_CLK_TCK"))
    return min(found), statistics.median(found), statistics.median(walls)


def time_starts() -> int:
    """Seconds until a round is drawn, written and its clock runs."""
    table = Table("program", "read", "drawn", "written and begun", "s in all")
    worst = 0.0
    with TemporaryDirectory() as folder, chdir(folder), Progress.open(Path(folder)) as store:
        for entry in load().programs:
            marks = [time.perf_counter()]
            program = read_program(Path(entry.folder))
            marks.append(time.perf_counter())
            ids = draw_bugs(program, 1, 4, 3)
            marks.append(time.perf_counter())
            write_round(program, ids)
            interview = begin(store, program, ids, 60, 1)
            marks.append(time.perf_counter())
            store.add_event(make_event(interview, "abandon"))
            steps = [f"{after - before:.3f}" for before, after in pairwise(marks)]
            table.add_row(program.name, *steps, f"{marks[-1] - marks[0]:.3f}")
        environment = os.environ | {"ATTNLAB_HOME": folder}
        attnlab = str(Path(sys.executable).with_name("attnlab"))
        start = [attnlab, "interview", "start", "char-gpt", "--force"]
        for command in (start, [sys.executable, "-c", "import torch"]):
            seconds = []
            for _ in range(TIMES):
                began = time.perf_counter()
                subprocess.run(command, check=True, capture_output=True, env=environment)
                seconds.append(time.perf_counter() - began)
                subprocess.run(
                    [attnlab, "interview", "abandon"],
                    check=False,
                    capture_output=True,
                    env=environment,
                )
            worst = worst or min(seconds)
            table.add_row(" ".join(command[1:3]), "", "", "", f"{min(seconds):.3f}")
    Console().print(table)
    return int(worst > STARTED)


def solve_rounds(count: int, first: int = 0) -> int:
    """Grade every choice of fixes of drawn rounds; prints those that come out wrong."""
    programs = [read_program(Path(entry.folder)) for entry in load().programs]
    wrong = graded = 0
    seen: set[tuple[str, tuple[str, ...]]] = set()
    with Worker() as worker:
        for seed in range(first, first + count):
            program = programs[seed % len(programs)]
            ids = draw_bugs(program, seed, 4, 3)
            decoys = [i for i in ids if program.patches[i].decoy]
            bugs = [i for i in ids if i not in decoys]
            for left in chain.from_iterable(combinations(bugs, n) for n in range(len(bugs) + 1)):
                choice = program.name, (*left, *decoys)
                if choice in seen:
                    continue
                seen.add(choice)
                job = ProgramJob(
                    program=program,
                    files=compose(program, choice[1]),
                    label=program.name,
                    stages=("grade",),
                    limits=Limits(seconds=60),
                    first_failure=True,
                )
                outcome = worker.run_program(job).outcome
                graded += 1
                if (outcome == "passed") != (not left) or outcome not in (*REJECTIONS, "passed"):
                    wrong += 1
                    print(f"{program.name} seed {seed}: {' + '.join(choice[1])} is {outcome}")
    print(f"{count} rounds, {graded} choices of fixes graded, {wrong} came out wrong")
    return int(wrong > 0)


def list_learners(names: list[str]) -> int:
    """The bugs that do not stop a program from learning, by program and effect."""
    table = Table("program", "bugs", "still learns with", "which, by what they do")
    total = 0
    with Worker() as worker:
        for entry in load().programs:
            if names and entry.name not in names:
                continue
            program = read_program(Path(entry.folder))
            found = [bug for bug in program.bugs if _still_learns(worker, program, bug.id)]
            effects = sorted({bug.effect for bug in found})
            listed = [f"{e}: {', '.join(b.id for b in found if b.effect == e)}" for e in effects]
            table.add_row(program.name, str(len(program.bugs)), str(len(found)), "\n".join(listed))
            total += len(found)
    Console().print(table)
    print(f"{total} bugs do not stop a program from learning; at least {LEARNERS} are wanted")
    return int(total < LEARNERS and not names)


def _still_learns(worker: Worker, program: Program, bug: str) -> bool:
    """Whether all goals of loss and accuracy are reached with one bug in the program."""
    job = _grade_job(program, compose(program, [bug]), ("train",), ())
    goals = {goal.id for goal in program.goals if goal.kind in ("loss", "accuracy")}
    reached = [g.outcome == "passed" for g in worker.run_program(job).goals if g.id in goals]
    return len(reached) == len(goals) and all(reached)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
