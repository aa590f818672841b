"""Try mutants, many in one process, which is replaced when one of them hangs or ends it.

Mutants are made from the right files of the catalogue, so no stranger's code runs here.
"""

import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Literal, NoReturn

from attnlab.files import LineReader
from attnlab.grading.pipeline import run_job
from attnlab.mutation_testing.equivalence import Standard, difference, standard
from attnlab.mutation_testing.in_process_host import spawn_in_process
from attnlab.probe.reference import ReferenceCache
from attnlab.records import Code, Contract, Limits, Report, from_json, to_json
from attnlab.records.trial import FileTrialReport, R, TrialJob, TrialReport, TrialResult, passes
from attnlab.worker.sandbox.layers import memory

MEMORY = 2 << 30  # bytes, besides what this process holds already
End = Literal["crashed", "timeout"]  # of a process that gave no answer
Try = Callable[[int], str]  # the result of a candidate, by its number, as JSON


def try_all(job: TrialJob) -> FileTrialReport:
    """Grade every candidate in turn; compare those that pass with the right files."""
    assert job.job.contract is not None
    codes, contract = to_json([job.job.candidate, *job.right]), to_json(job.job.contract)
    right = _standards(codes, contract) if job.compare else []
    references = ReferenceCache()

    def try_number(number: int) -> str:
        return to_json(_try_candidate(job, job.candidates[number], right, references))

    return trial_report(Report, try_in_forks(len(job.candidates), try_number, job.seconds))


def trial_report(kind: type[R], answers: Sequence[bytes | End]) -> TrialReport[R]:
    """The report on candidates, each with its result as JSON or with how its process ended."""

    def result(answer: bytes | End) -> TrialResult[R]:
        if isinstance(answer, bytes):
            return from_json(TrialResult[kind], answer)  # type: ignore[arg-type,valid-type]
        return TrialResult(reports=(kind(outcome=answer, message="no answer"),))

    return TrialReport(results=tuple(map(result, answers)))


def try_in_forks(count: int, try_number: Try, seconds: float) -> list[bytes | End]:
    """The answer for each number below `count`, or how the process ended that tried it."""
    answers: list[bytes | End] = []
    while len(answers) < count:
        answers += _try_in_fork(range(len(answers), count), try_number, seconds)
    return answers


def _try_in_fork(numbers: range, try_number: Try, seconds: float) -> list[bytes | End]:
    """The answers for these numbers, up to one that ends the process."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        _serve_answers(write, numbers, try_number)
    os.close(write)
    answers: list[bytes | End] = []
    reader = LineReader(read)
    try:
        for _ in numbers:
            answers.append(reader.line(time.monotonic() + seconds))  # noqa: PERF401  they stay
    except TimeoutError:
        answers.append("timeout")
    except EOFError:
        answers.append("crashed")
    finally:
        os.close(read)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return answers


def _serve_answers(write: int, numbers: range, try_number: Try) -> NoReturn:
    try:
        memory(Limits(memory=MEMORY))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        for number in numbers:
            with open(write, "wb", closefd=False) as stream:
                stream.write(try_number(number).encode() + b"\n")
    finally:
        os._exit(0)


def _try_candidate(
    job: TrialJob, candidate: Code, right: list[Standard], references: ReferenceCache
) -> TrialResult[Report]:
    jobs = [replace(job.job, candidate=candidate, seed=seed) for seed in job.seeds]
    reports = tuple(run_job(one, spawn_in_process, references) for one in jobs)
    differs = difference(candidate, right) if right and any(map(passes, reports)) else ""
    return TrialResult(reports=reports, difference=differs)


@lru_cache(maxsize=1)
def _standards(files: str, contract: str) -> list[Standard]:
    """Computed once for all mutants of a challenge; the keys are texts, which can be hashed."""
    return standard(from_json(tuple[Code, ...], files), from_json(Contract, contract), seed=0)
