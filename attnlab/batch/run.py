"""A run: submissions that have no verdict yet are graded, each verdict is kept at once."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from attnlab import __version__
from attnlab.batch.grader import AnyJob, AnyReport, Grader, Task, conclude
from attnlab.batch.submissions import digest_submission
from attnlab.errors import Broken, Refused
from attnlab.files import shown_path
from attnlab.records import Job, Limits, Report, to_json
from attnlab.records.batch import LAYOUT, BatchProgress, BatchRun, Graded, Submission
from attnlab.records.program import ProgramJob, ProgramReport
from attnlab.run_store import RunStore, folder_digest, package_digest
from attnlab.worker.wire import KILLED

T = TypeVar("T")
R = TypeVar("R")
RUN = "run"  # the key of the run itself; those of verdicts have a space in front
TRIES = 2  # for a submission whose process or judge was killed, which others may have done
SHOWN = 8  # reasons beside a run that is going on
# What a run is refused for, where it goes on otherwise than it began.
SAME = ("challenge", "attnlab", "torch", "sources", "digest", "limits", "seed")
NAMES = {"sources": "attnlab's sources", "digest": "the files of the challenge"}


class Runner(Protocol):
    """A worker, or a pool of them."""

    def run_job(self, job: Job) -> Report: ...

    def run_program(self, job: ProgramJob) -> ProgramReport: ...


def plan_run(grader: Grader, limits: Limits, seed: int, total: int) -> BatchRun:
    """How all submissions of a run will be graded."""
    return BatchRun(
        challenge=grader.slug,
        digest=folder_digest(grader.folder),
        attnlab=__version__,
        sources=package_digest(),
        torch=torch_version(),
        limits=limits,
        seed=seed,
        total=total,
    )


def draw_seed(submissions: Iterable[Submission]) -> int:
    """A seed of their names, so that parts of a class that are graded apart have the same."""
    names = "\n".join(submission.name for submission in submissions)
    return int.from_bytes(hashlib.sha256(names.encode()).digest()[:4])


def torch_version() -> str:
    """From the package's metadata: only workers import torch."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("torch")
    except PackageNotFoundError:
        return "none"


class BatchStore:
    """The file of one run: the run itself, and a verdict for each name."""

    def __init__(self, path: Path, writing: bool = True) -> None:
        """Raises `Refused` where the file is of no use, or in use."""
        if not writing and not path.is_file():
            hint = "attnlab batch grade writes one; it says where"
            raise Refused(f"{shown_path(path)}: there is no such run", hint)
        self.path = path
        self.results = RunStore(path, "--run", alone=writing)

    def begin(self, run: BatchRun, resume: bool) -> None:
        """Keep the run; raises `Refused` where the file holds another."""
        before = self.run()
        shown = shown_path(self.path)
        if before and not resume:
            count = sum(1 for _ in self.graded())
            hint = "--resume goes on with it; --run FILE begins another"
            raise Refused(f"{shown} holds {count} of {before.total} verdicts", hint, "--run")
        if before and (other := difference(before, run)):
            hint = "--run FILE begins another run"
            raise Refused(f"{shown} cannot go on: {other}", hint, "--resume")
        self.results.add(RUN, "", run)

    def run(self) -> BatchRun | None:
        """The run that the file holds; raises `Refused` where another version wrote it."""
        found = self.results.get(RUN, BatchRun)
        written = self.results.has(RUN)
        if written and (found is None or found.layout != LAYOUT):
            by = f"layout {found.layout}" if found else "another layout"
            message = f"{shown_path(self.path)} was written by another version of attnlab"
            raise Refused(f"{message} ({by}; this one reads layout {LAYOUT})", "begin another run")
        return found

    def require_run(self) -> BatchRun:
        """The run that the file holds; raises `Refused` where it holds none."""
        if found := self.run():
            return found
        hint = "attnlab batch grade writes one"
        raise Refused(f"{shown_path(self.path)} holds no run of attnlab batch", hint)

    def graded(self) -> Iterator[Graded]:
        """All verdicts so far, by name."""
        return self.results.all(Graded)

    def add(self, graded: Graded) -> None:
        """A second verdict takes the place of the first."""
        self.results.add(f" {graded.name}", graded.name, graded)

    def drop(self, names: Iterable[str]) -> None:
        for name in names:
            self.results.remove(f" {name}")

    def close(self) -> None:
        self.results.close()


def difference(before: BatchRun, now: BatchRun) -> str:
    """In what two runs differ, with both values; "" where their verdicts can be compared."""
    for name in SAME:
        old, new = getattr(before, name), getattr(now, name)
        if old != new:
            if isinstance(old, Limits):
                old, new = (f"{x.seconds:g} s and {x.memory >> 20} MiB" for x in (old, new))
            return f"{NAMES.get(name, name)} was {old} and is {new}"
    return ""


# ---------------------------------------------------------------- grading


@dataclass
class Progress:
    """Counts what comes in."""

    total: int
    begun: float = field(default_factory=time.monotonic)
    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    slots: dict[str, None] = field(default_factory=dict)  # what is being graded, in order
    new: int = 0

    def start(self) -> None:
        """Measure the rate from now on: workers have been started."""
        self.begun = time.monotonic()

    def count(self, graded: Graded) -> None:
        """Count a verdict of before."""
        self.outcomes[graded.verdict.outcome] += 1
        if graded.verdict.outcome != "passed":
            self.reasons[graded.first] += 1

    def add(self, graded: Graded) -> None:
        """Count a verdict of this command."""
        self.new += 1
        self.count(graded)

    def now(self, last: Graded | None = None) -> BatchProgress:
        done = sum(self.outcomes.values())
        rate = self.new / max(time.monotonic() - self.begun, 1e-9)
        return BatchProgress(
            done=done,
            total=self.total,
            rate=rate,
            left=(self.total - done) / rate if rate else float("inf"),
            outcomes=dict(self.outcomes),
            reasons=dict(self.reasons.most_common(SHOWN)),
            slots=tuple(self.slots),
            last=last,
        )


def find_ungraded(
    grader: Grader, submissions: Iterable[Submission], store: BatchStore
) -> list[Submission]:
    """Those without a verdict. What was handed in anew since, and where attnlab itself failed, is
    graded again; verdicts on what was there before are dropped."""
    known = {one.name: one for one in map(_small, store.graded())}
    files = grader.files()
    left = []
    for submission in submissions:
        one = known.pop(submission.name, None)
        if one is None or one.error or one.digest != digest_submission(submission, files):
            left.append(submission)
    store.drop([*known, *(submission.name for submission in left)])
    return left


class _Known(NamedTuple):
    name: str
    digest: str
    error: bool


def _small(one: Graded) -> _Known:
    return _Known(one.name, one.digest, one.verdict.outcome == "error")


def grade_all(
    grader: Grader, runner: Runner, tasks: Iterable[Task], progress: Progress, slots: int
) -> Iterator[Graded]:
    """The verdict on each task, as it comes."""

    def work(task: Task) -> Graded:
        progress.slots[task.submission.name] = None
        try:
            return grade_one(grader, runner, task)
        finally:
            del progress.slots[task.submission.name]

    yield from at_once(tasks, work, slots)


def grade_one(grader: Grader, runner: Runner, task: Task) -> Graded:
    """The verdict on one submission, whatever becomes of the process that grades it."""
    if task.job is None:
        return conclude(grader, task, None)
    return conclude(grader, task, *run_safely(runner, task.job))


def run_safely(runner: Runner, job: AnyJob) -> tuple[AnyReport | None, str]:
    """The report on a job, or why there is none; what was killed is tried again."""
    report: AnyReport | None = None
    fault = ""
    for _ in range(TRIES):
        try:
            report = runner.run_job(job) if isinstance(job, Job) else runner.run_program(job)
        except Broken as error:
            fault = f"attnlab failed twice: {error.message}"
            continue
        if KILLED not in to_json(report):
            break
    return report, fault


def at_once(items: Iterable[T], work: Callable[[T], R], size: int) -> Iterator[R]:
    """What `work` makes of each item, as it comes, in `size` threads. Items are drawn when a thread
    has room for them, so no more than a few results wait at a time."""
    pool = ThreadPoolExecutor(size)
    running: set[Future[R]] = set()
    try:
        for item in items:
            running.add(pool.submit(work, item))
            if len(running) > size:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                yield from _results(done)
        while running:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            yield from _results(done)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # the workers of its threads end next


def _results(done: Iterable[Future[R]]) -> Iterator[R]:
    """What there is, before what was raised beside it."""
    return (each.result() for each in sorted(done, key=lambda each: each.exception() is not None))
