"""Grade on the nodes of a Dask cluster: each runs chunks of jobs through its own isolated judge.

Dask sees neither a crash nor a hang: they end a candidate's process, and the report says so. Where
a node is lost Dask gives its chunk to another, and a verdict is kept under the submission's name,
so that a chunk which is done twice changes nothing.
"""

from __future__ import annotations

import logging
import lzma
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from itertools import islice
from queue import Empty, SimpleQueue
from typing import Any

from attnlab import __version__
from attnlab.batch.grader import Grader, Task, conclude
from attnlab.batch.run import run_safely, torch_version
from attnlab.errors import Broken, Refused
from attnlab.records import Job, Report, from_json, record, to_json
from attnlab.records.batch import BatchRun, Graded
from attnlab.records.program import ProgramJob, ProgramReport
from attnlab.run_store import package_digest
from attnlab.worker.client import Worker, encode_job

CHUNK = 25  # submissions: some seconds of work, and as many messages as one takes
AHEAD = 2  # chunks for each thread of a node: one that is graded, one that waits there
RETRIES = 3  # of a chunk whose node was lost
PATIENCE = 20.0  # seconds for a scheduler to answer, and for a first node to come
GLANCE = 0.05  # seconds between looks at what has come in
BREAK = b"\0"  # between messages: JSON holds none


@record
class Outcome:
    """What a node says of one job: its report as JSON, or why there is none."""

    report: str = ""
    fault: str = ""
    versions: str = ""  # of a node that has others than the run


# ---------------------------------------------------------------- on a node

_idle: SimpleQueue[Worker] = SimpleQueue()  # that a chunk of before has left


def node_versions() -> str:
    """What must be the same on all nodes, in words."""
    return _versions(__version__, package_digest(), torch_version())


def _versions(attnlab: str, sources: str, torch: str) -> str:
    return f"attnlab {attnlab} (sources {sources}) and torch {torch}"


def grade_chunk(expected: str, packed: bytes) -> bytes:
    """Run the jobs of a chunk. A node that has other versions runs none and names its own."""
    if node_versions() != expected:
        return lzma.compress(to_json(Outcome(versions=node_versions())).encode())
    try:
        worker = _idle.get_nowait()
    except Empty:
        worker = Worker()
    found = []
    for message in lzma.decompress(packed).split(BREAK):
        report, fault = run_safely(worker, _decode(message))
        outcome = Outcome(fault=fault) if report is None else Outcome(report=to_json(report))
        found.append(to_json(outcome).encode())
    _idle.put(worker)
    return lzma.compress(BREAK.join(found), preset=1)


def _decode(message: bytes) -> Job | ProgramJob:
    name, _, text = message.partition(b"\n")
    return from_json(Job, text) if name == b"Job" else from_json(ProgramJob, text)


# ---------------------------------------------------------------- at the front


@contextmanager
def connect(address: str, run: BatchRun) -> Iterator[Any]:
    """A client of the scheduler, whose nodes have the versions of the run; raises `Refused`."""
    try:
        distributed: Any = import_module("distributed")  # an extra, which may be missing
    except ImportError:
        hint = "pip install 'attnlab[dask]', or grade parts with --shard and merge them"
        raise Refused("--scheduler needs Dask, which is not installed", hint) from None
    for name in (
        "distributed.client",
        "distributed.core",
        "tornado",
        "asyncio",
    ):  # they log what is told in one line here
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    try:
        client = distributed.Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError, TypeError, ImportError) as error:
        why = " ".join(str(error).split())[:120]
        hint = "`dask scheduler` starts one, and prints its address"
        raise Refused(f"no scheduler answers at {address}: {why}", hint, "--scheduler") from None
    try:
        _require_nodes(client, address, _versions(run.attnlab, run.sources, run.torch))
        yield client
    finally:
        client.close(timeout=2)


def _require_nodes(client: Any, address: str, expected: str) -> None:
    """Raise `Refused` where there is no node, or one has other versions."""
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError:
        hint = f"`dask worker {address}` starts one on each machine"
        raise Refused(f"the scheduler at {address} has no worker", hint, "--scheduler") from None
    try:
        found = client.run(node_versions)
    except Exception as error:
        why = f"{type(error).__name__}: {error}"[:200]
        hint = "install the same attnlab there"
        raise Refused(f"a worker cannot run attnlab: {why}", hint, "--scheduler") from None
    for node, versions in found.items():
        if versions != expected:
            raise _other_versions(node, versions, expected)


def _other_versions(node: str, theirs: str, ours: str) -> Refused:
    hint = "install the same on all machines: verdicts would not be comparable"
    return Refused(f"the worker {node} has {theirs}; this command has {ours}", hint, "--scheduler")


def grade_on(
    client: Any, grader: Grader, run: BatchRun, tasks: Iterable[Task], count: int
) -> Iterator[Graded]:
    """The verdict on each of `count` tasks, as chunks come in; raises `Broken` where the scheduler
    is lost. The last chunks of a short run are small, so that no node waits for another."""
    expected = _versions(run.attnlab, run.sources, run.torch)
    left = iter(tasks)
    running: dict[Any, list[Task]] = {}
    room = _room(client)
    size = min(CHUNK, -(-count // room))
    while True:
        while len(running) < room and (some := list(islice(left, size))):
            yield from (conclude(grader, task, None) for task in some if task.job is None)
            if jobs := [task for task in some if task.job is not None]:
                packed = _pack(jobs)
                future = client.submit(grade_chunk, expected, packed, pure=False, retries=RETRIES)
                running[future] = jobs
        if not running:
            return
        for future in [each for each in running if each.status != "pending"]:
            yield from _conclude_chunk(grader, future, running.pop(future), expected)
            room = _room(client)  # nodes come and go
        if client.status != "running":
            raise _lost()
        time.sleep(GLANCE)


def _room(client: Any) -> int:
    """How many chunks may be under way."""
    try:
        threads: dict[str, int] = client.nthreads()
    except OSError:
        raise _lost() from None
    return AHEAD * max(1, sum(threads.values()))


def _lost() -> Broken:
    return Broken("the scheduler is gone", "verdicts so far are kept: --resume goes on")


def _pack(tasks: Sequence[Task]) -> bytes:
    """The jobs of a chunk; what they have in common is packed once."""
    messages = [encode_job(task.job) for task in tasks]
    return lzma.compress(BREAK.join(messages), preset=1)


def _conclude_chunk(
    grader: Grader, future: Any, tasks: Sequence[Task], expected: str
) -> Iterator[Graded]:
    """The verdicts on a chunk that has come in, or was given up after several nodes."""
    if future.status in ("cancelled", "lost"):
        raise _lost()
    if future.status == "error":
        fault = f"attnlab failed: {type(future.exception()).__name__}, no node could grade it"
        yield from (conclude(grader, task, None, fault) for task in tasks)
        return
    parts = lzma.decompress(future.result()).split(BREAK)
    outcomes = [from_json(Outcome, part) for part in parts]
    if outcomes[0].versions:
        raise _other_versions("that came later", outcomes[0].versions, expected)
    for task, outcome in zip(tasks, outcomes, strict=True):
        kind: Any = Report if isinstance(task.job, Job) else ProgramReport
        report = from_json(kind, outcome.report) if outcome.report else None
        yield conclude(grader, task, report, outcome.fault)
