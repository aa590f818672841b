"""Grades many mutants in one process, which is replaced when a mutant hangs or ends it.

That is safe enough: mutants are generated from the right files of a challenge, so they are not
strangers' code, and can do no more harm than any bug.
"""

from __future__ import annotations

import os
import select
import signal
import time
from dataclasses import replace
from functools import lru_cache
from typing import NoReturn

from attnlab.grading.pipeline import run_job
from attnlab.mutation_testing.equivalence import Standard, difference, standard
from attnlab.mutation_testing.in_process_host import spawn_in_process
from attnlab.probe.reference import ReferenceCache
from attnlab.records import Code, Contract, JobOutcome, Limits, Report, from_json, to_json
from attnlab.records.trial import TrialJob, TrialReport, TrialResult, passes
from attnlab.worker.sandbox.layers import memory

MEMORY = 2 << 30  # bytes, besides what this process holds already


def try_all(job: TrialJob) -> TrialReport:
    """Grade every candidate in turn; compare those that pass with the right files."""
    assert job.job.contract is not None
    right = _standards(to_json([job.job.candidate, *job.right]), to_json(job.job.contract))
    results: list[TrialResult] = []
    while len(results) < len(job.candidates):
        results += _try_in_fork(job, right, len(results))
    return TrialReport(results=tuple(results))


def _try_in_fork(job: TrialJob, right: list[Standard], first: int) -> list[TrialResult]:
    """The results from candidate number `first` on, until the last or one that ends the process."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        _serve_results(write, job, right, first)
    os.close(write)
    results: list[TrialResult] = []
    buffer = b""
    try:
        while first + len(results) < len(job.candidates):
            buffer, end = _read_line(read, buffer, time.monotonic() + job.seconds)
            if end is not None:
                return [*results, TrialResult(reports=(Report(outcome=end, message="no answer"),))]
            line, _, buffer = buffer.partition(b"\n")
            results.append(from_json(TrialResult, line))
        return results
    finally:
        os.close(read)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _read_line(read: int, buffer: bytes, deadline: float) -> tuple[bytes, JobOutcome | None]:
    """The buffer, once it holds a whole line; and how the process ended, if it sent none."""
    while b"\n" not in buffer:
        ready = select.select([read], [], [], max(0.0, deadline - time.monotonic()))[0]
        piece = os.read(read, 1 << 16) if ready else b""
        if not piece:
            return buffer, "crashed" if ready else "timeout"
        buffer += piece
    return buffer, None


def _serve_results(write: int, job: TrialJob, right: list[Standard], first: int) -> NoReturn:
    try:
        memory(Limits(memory=MEMORY))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        references = ReferenceCache()
        for candidate in job.candidates[first:]:
            with open(write, "wb", closefd=False) as stream:
                result = _try_candidate(job, candidate, right, references)
                stream.write(to_json(result).encode() + b"\n")
    finally:
        os._exit(0)


def _try_candidate(
    job: TrialJob, candidate: Code, right: list[Standard], references: ReferenceCache
) -> TrialResult:
    jobs = [replace(job.job, candidate=candidate, seed=seed) for seed in job.seeds]
    reports = tuple(run_job(one, spawn_in_process, references) for one in jobs)
    differs = difference(candidate, right) if any(map(passes, reports)) else ""
    return TrialResult(reports=reports, difference=differs)


@lru_cache(maxsize=1)
def _standards(files: str, contract: str) -> list[Standard]:
    """Computed once for all mutants of a challenge; the keys are texts, which can be hashed."""
    return standard(from_json(tuple[Code, ...], files), from_json(Contract, contract), seed=0)
