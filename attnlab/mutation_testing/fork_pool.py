"""Tries mutants, many in one process, which is replaced when one of them hangs or ends it.

Mutants are made from the right files of a challenge, so they are no strangers' code: what they can
do wrong is what any bug can do.
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

MEMORY = 2 << 30  # over what this process holds already


def try_all(job: TrialJob) -> TrialReport:
    """Every candidate in turn."""
    right = _standard_of(job)
    found: list[TrialResult] = []
    while len(found) < len(job.candidates):
        found += _try_in_fork(job, right, len(found))
    return TrialReport(results=tuple(found))


def _try_in_fork(job: TrialJob, right: list[Standard], first: int) -> list[TrialResult]:
    """Candidates from the first on, until all are tried or one of them ends the process."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        _serve_results(write, job, right, first)
    os.close(write)
    found: list[TrialResult] = []
    heard = b""
    try:
        while first + len(found) < len(job.candidates):
            heard, ended = _read_line(read, heard, time.monotonic() + job.seconds)
            if ended is not None:
                return [*found, TrialResult(reports=(Report(outcome=ended, message="no answer"),))]
            line, _, heard = heard.partition(b"\n")
            found.append(from_json(TrialResult, line))
        return found
    finally:
        os.close(read)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _read_line(read: int, heard: bytes, deadline: float) -> tuple[bytes, JobOutcome | None]:
    """What was heard, once it has a whole line; else how the process ended."""
    while b"\n" not in heard:
        ready = select.select([read], [], [], max(0.0, deadline - time.monotonic()))[0]
        piece = os.read(read, 1 << 16) if ready else b""
        if not piece:
            return heard, "crashed" if ready else "timeout"
        heard += piece
    return heard, None


def _serve_results(write: int, job: TrialJob, right: list[Standard], first: int) -> NoReturn:
    try:
        memory(Limits(memory=MEMORY))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        references = ReferenceCache()
        for candidate in job.candidates[first:]:
            with open(write, "wb", closefd=False) as stream:
                tried = _try_candidate(job, candidate, right, references)
                stream.write(to_json(tried).encode() + b"\n")
    finally:
        os._exit(0)


def _try_candidate(
    job: TrialJob, candidate: Code, right: list[Standard], references: ReferenceCache
) -> TrialResult:
    asked = replace(job.job, candidate=candidate)
    reports = tuple(
        run_job(replace(asked, seed=seed), spawn_in_process, references) for seed in job.seeds
    )
    differs = any(map(passes, reports)) and difference(candidate, right)
    return TrialResult(reports=reports, difference=differs or "")


def _standard_of(job: TrialJob) -> list[Standard]:
    assert job.job.contract is not None
    return _standard(to_json([job.job.candidate, *job.right]), to_json(job.job.contract))


@lru_cache(maxsize=1)
def _standard(files: str, contract: str) -> list[Standard]:
    """Worked out once for all mutants of a challenge; keyed by texts, which can be hashed."""
    return standard(from_json(tuple[Code, ...], files), from_json(Contract, contract), seed=0)
