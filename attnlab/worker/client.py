"""The front's end of the worker: a `Job` goes in, a `Report` comes out. No torch here."""

from __future__ import annotations

import errno
import os
import socket
import threading
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, Self, TypeVar

from attnlab.catalogue.load import opened_topics
from attnlab.errors import Broken
from attnlab.records import Job, Report, from_json, to_json
from attnlab.worker.cold_start import NO_PROCESS, ColdStart
from attnlab.worker.warm_start import warm_start, why_unwanted
from attnlab.worker.wire import TooLong, receive, send

if TYPE_CHECKING:
    from collections.abc import Iterator

    from attnlab.records.position import PositionJob, PositionReport
    from attnlab.records.program import ProgramJob, ProgramReport
    from attnlab.records.trial import FileTrialReport, ProgramTrialJob, ProgramTrialReport, TrialJob

START_TIME = 120.0  # seconds that importing torch may take on a slow disk
POSITION_TIME = 120.0  # seconds that the largest table may take on a busy machine
RIGHT_FILES_TIME = 120.0  # seconds that all right files of a challenge may take together
JUDGE_TIME = 30.0  # seconds the judge has for its own work, after the job's deadline
STOOD_STILL = 2.0  # seconds past the limit: a busy judge takes less to notice that time is up
Answer = TypeVar("Answer")
Tried = TypeVar("Tried", "FileTrialReport", "ProgramTrialReport")


class Worker:
    """One worker process tree; creating it starts the import of torch in the background, or
    connects to the warm judge, which has imported it already.

    If a job ends the worker, only that job fails: the next one starts a new worker."""

    def __init__(self) -> None:
        if not hasattr(os, "fork"):
            raise Broken(
                "attnlab runs candidates in forked processes, which this system does not have",
                "use Linux, macOS or, on Windows, WSL",
            )
        self.notes: list[str] = []  # what the user should know of the warm judge
        self.retired = False
        self._ending = threading.Lock()
        self._start(warm=not why_unwanted())

    def _start(self, warm: bool = False) -> None:
        catalogue = os.pathsep.join(sorted(opened_topics))
        self.connection = (warm_start(catalogue, self.notes) if warm else None) or ColdStart(
            catalogue
        )
        self.sock = self.connection.sock

    def run_job(self, job: Job) -> Report:
        """Wait for the judge's answer; raises `Broken` if there is none. A file that had no time as
        the judge was suspended runs once more."""
        report = self._request(job, Report, job.limits.seconds + JUDGE_TIME)
        late = report.outcome == "timeout" or any(c.reason == "timeout" for c in report.checks)
        if late and report.seconds > job.limits.seconds + STOOD_STILL:
            self.notes.append("the judge stood still until the time was up; the file ran again")
            report = self._request(job, Report, job.limits.seconds + JUDGE_TIME)
        return report

    def run_program(self, job: ProgramJob) -> ProgramReport:
        """Train or grade a program; raises `Broken` as `run_job` does."""
        from attnlab.records.program import ProgramReport

        return self._request(job, ProgramReport, job.limits.seconds + JUDGE_TIME)

    def position(self, job: PositionJob) -> PositionReport:
        """Compute tables and plots of a positional encoding; raises `Broken` as `run_job` does."""
        from attnlab.records.position import PositionReport

        return self._request(job, PositionReport, POSITION_TIME)

    def trials(self, job: TrialJob) -> FileTrialReport:
        """Grade mutants; raises `Broken` as `run_job` does."""
        from attnlab.records.trial import FileTrialReport

        return _checked(self._request(job, FileTrialReport, _trial_time(job)))

    def program_trials(self, job: ProgramTrialJob) -> ProgramTrialReport:
        """Grade mutants of a program; raises `Broken` as `run_job` does."""
        from attnlab.records.trial import ProgramTrialReport

        return _checked(self._request(job, ProgramTrialReport, _trial_time(job)))

    def _request(self, job: object, answer: type[Answer], seconds: float) -> Answer:
        """The judge's answer, a record of this kind."""
        if self.retired:
            raise Broken("the worker was ended")
        if self.sock.fileno() < 0:  # the last request ended it
            self._start()
        message = encode_job(job)
        try:
            text = self._exchange(message, seconds)
        except EOFError as error:
            if self.retired or not self.connection.warm:
                raise Broken("the worker ended before its answer", self._last_words()) from error
            self.close()
            self.notes.append("the warm judge ended before its answer; the job ran again without")
            self._start()
            return self._request(job, answer, seconds)
        except TimeoutError:
            self.close()  # a late answer must not be read as the next job's
            raise Broken(
                "the worker does not answer", "try again; `attnlab doctor` may tell"
            ) from None
        try:
            return from_json(answer, text)
        except ValueError as error:
            self.close()
            raise Broken(f"the worker's answer makes no sense: {str(error)[:200]}") from error

    def _exchange(self, message: bytes, seconds: float) -> bytearray:
        """The answer's frame; raises `TimeoutError`, or `EOFError` where the worker has ended."""
        self.sock.settimeout(START_TIME + seconds)
        try:
            send(self.sock, message)
            return receive(self.sock)
        except TimeoutError:
            raise
        except OSError as error:
            raise EOFError from error
        except TooLong as error:
            self.close()
            raise Broken(f"the worker's answer makes no sense: {str(error)[:200]}") from error

    def _last_words(self) -> str:
        """The last line that the worker printed: most often why torch cannot be imported."""
        stderr = self.close()
        lines = [line for line in stderr.decode("utf-8", "replace").splitlines() if line.strip()]
        if any(os.strerror(errno.EAGAIN) in line for line in lines[-1:]):
            return NO_PROCESS
        return f"it said: {lines[-1].strip()}" if lines else "ATTNLAB_DEBUG=1 shows more"

    def close(self) -> bytes:
        """End all its processes; returns what they printed on stderr."""
        with suppress(OSError):  # wakes a thread that waits for an answer
            self.sock.shutdown(socket.SHUT_RDWR)
        with self._ending:  # that thread ends them, too
            return self.connection.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _trial_time(job: TrialJob | ProgramTrialJob) -> float:
    return RIGHT_FILES_TIME + job.seconds * len(job.candidates)


def _checked(report: Tried) -> Tried:
    if report.fault:
        raise Broken(report.fault, "ATTNLAB_DEBUG=1 shows more")
    return report


def encode_job(job: object) -> bytes:
    """A job as it travels: the name of its record, and the record."""
    return f"{type(job).__name__}\n{to_json(job)}".encode()


class WorkerPool:
    """Several workers, each with a torch of its own; as many threads can use them at once."""

    def __init__(self, size: int) -> None:
        self.workers = [Worker() for _ in range(size)]
        self.free: SimpleQueue[Worker] = SimpleQueue()
        for worker in self.workers:
            self.free.put(worker)

    def run_job(self, job: Job) -> Report:
        with self._borrow_worker() as worker:
            return worker.run_job(job)

    def run_program(self, job: ProgramJob) -> ProgramReport:
        with self._borrow_worker() as worker:
            return worker.run_program(job)

    def trials(self, job: TrialJob) -> FileTrialReport:
        with self._borrow_worker() as worker:
            return worker.trials(job)

    def program_trials(self, job: ProgramTrialJob) -> ProgramTrialReport:
        with self._borrow_worker() as worker:
            return worker.program_trials(job)

    @contextmanager
    def _borrow_worker(self) -> Iterator[Worker]:
        worker = self.free.get()
        try:
            yield worker
        finally:
            self.free.put(worker)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for worker in self.workers:
            worker.retired = True  # a thread that waits for an answer starts it no more
            worker.close()
