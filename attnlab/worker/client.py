"""The front's end of the worker: a `Job` goes in, a `Report` comes out. No torch here."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Self, TypeVar

from attnlab.catalogue.load import opened_topics
from attnlab.errors import Broken
from attnlab.records import Job, Report, from_json
from attnlab.records.position import PositionJob, PositionReport
from attnlab.records.program import ProgramJob, ProgramReport
from attnlab.records.trial import ProgramTrialJob, ProgramTrialReport, TrialJob, TrialReport
from attnlab.worker.requests import (
    JOB,
    POSITION,
    PROGRAM,
    PROGRAM_TRIALS,
    TRIALS,
    Answer,
    Request,
    Sent,
)
from attnlab.worker.wire import TooLong, receive, send

SERVER = Path(__file__).parent / "zygote.py"
START_TIME = 120.0  # seconds that importing torch may take on a slow disk
POSITION_TIME = 120.0  # seconds that the largest table may take on a busy machine
RIGHT_FILES_TIME = 120.0  # seconds that all right files of a challenge may take together
JUDGE_TIME = 30.0  # seconds the judge has for its own work, after the job's deadline
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
# A heap of large pages is forked in half the time: 500 times fewer entries are copied. What large
# tensors leave stays in it: to ask the system each time takes longer than to compute.
MALLOC = {"hugetlb": 1, "mmap_threshold": 32 << 20, "trim_threshold": 256 << 20}
TUNABLES = ":".join(f"glibc.malloc.{name}={value}" for name, value in MALLOC.items())
HEAP = {"GLIBC_TUNABLES": TUNABLES}  # other C libraries do not read it
# torch.compile runs the code as written: operations can be traced, and no compiler writes files.
NO_COMPILER = {"TORCHDYNAMO_DISABLE": "1"}
NOWHERE = "/"  # the current folder of a worker without one of its own: it cannot write there
INHERITED = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "ATTNLAB_DEBUG")
TrialAnswer = TypeVar("TrialAnswer", TrialReport, ProgramTrialReport)


class Worker:
    """One worker process tree; creating it starts the import of torch in the background.

    If a job ends the worker, only that job fails: the next one starts a new worker."""

    def __init__(self) -> None:
        if not hasattr(os, "fork"):
            raise Broken(
                "attnlab runs candidates in forked processes, which this system does not have",
                "use Linux, macOS or, on Windows, WSL",
            )
        self._start()

    def _start(self) -> None:
        self.sock, theirs = socket.socketpair()
        self.folder = _own_folder()
        environment = {k: os.environ[k] for k in INHERITED if k in os.environ}
        environment |= dict.fromkeys(THREADS, "1") | HEAP | NO_COMPILER
        environment["ATTNLAB_CATALOGUE"] = os.pathsep.join(sorted(opened_topics))
        with theirs:
            try:
                self.process = subprocess.Popen(
                    [sys.executable, "-I", "-B", str(SERVER), str(theirs.fileno())],
                    env=environment,
                    cwd=self.folder or NOWHERE,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=None if os.environ.get("ATTNLAB_DEBUG") else subprocess.PIPE,
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,  # Ctrl-C is ours to handle
                )
            except OSError as error:
                self.sock.close()
                _remove(self.folder)
                raise Broken(f"the worker cannot be started: {error}") from error

    def run_job(self, job: Job) -> Report:
        """Wait for the judge's answer; raises `Broken` if there is none."""
        return self._request(JOB, job, job.limits.seconds + JUDGE_TIME)

    def run_program(self, job: ProgramJob) -> ProgramReport:
        """Train or grade a program; raises `Broken` as `run_job` does."""
        return self._request(PROGRAM, job, job.limits.seconds + JUDGE_TIME)

    def position(self, job: PositionJob) -> PositionReport:
        """Compute tables and plots of a positional encoding; raises `Broken` as `run_job` does."""
        return self._request(POSITION, job, POSITION_TIME)

    def trials(self, job: TrialJob) -> TrialReport:
        """Grade mutants; raises `Broken` as `run_job` does."""
        return self._try(TRIALS, job, job.seconds * len(job.candidates))

    def program_trials(self, job: ProgramTrialJob) -> ProgramTrialReport:
        """Grade mutants of a program; raises `Broken` as `run_job` does."""
        return self._try(PROGRAM_TRIALS, job, job.seconds * len(job.candidates))

    def _try(self, request: Request[Sent, TrialAnswer], job: Sent, seconds: float) -> TrialAnswer:
        report = self._request(request, job, RIGHT_FILES_TIME + seconds)
        if report.fault:
            raise Broken(report.fault, "ATTNLAB_DEBUG=1 shows more")
        return report

    def _request(self, request: Request[Sent, Answer], record: Sent, seconds: float) -> Answer:
        if self.sock.fileno() < 0:  # the last request ended it
            self._start()
        self.sock.settimeout(START_TIME + seconds)
        with self._answering():
            send(self.sock, request.encode(record))
            return from_json(request.answer, receive(self.sock))

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """Turn a failure to answer into `Broken`, with one line."""
        try:
            yield
        except TimeoutError:
            self.close()  # a late answer must not be read as the next job's
            raise Broken(
                "the worker does not answer", "try again; `attnlab doctor` may tell"
            ) from None
        except (EOFError, OSError) as error:
            raise Broken("the worker ended before its answer", self._last_words()) from error
        except (ValueError, TooLong) as error:
            self.close()
            raise Broken(f"the worker's answer makes no sense: {str(error)[:200]}") from error

    def _last_words(self) -> str:
        """The last line that the worker printed: most often why torch cannot be imported."""
        stderr = self.close()
        lines = [line for line in stderr.decode("utf-8", "replace").splitlines() if line.strip()]
        return f"it said: {lines[-1].strip()}" if lines else "ATTNLAB_DEBUG=1 shows more"

    def close(self) -> bytes:
        """End all its processes; returns what they printed on stderr."""
        self.sock.close()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            said = self.process.communicate(timeout=10)[1]
        except subprocess.TimeoutExpired:
            self.process.kill()
            said = self.process.communicate()[1]
        _remove(self.folder)
        return said or b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _own_folder() -> str | None:
    """The current folder of the worker's processes: libraries may leave files there."""
    import tempfile  # only where it is needed: commands without a worker start fast

    try:
        return tempfile.mkdtemp(prefix="attnlab-")
    except OSError:  # there is no folder to write to
        return None


def _remove(folder: str | None) -> None:
    import shutil

    if folder is None:
        return
    try:
        shutil.rmtree(folder, ignore_errors=True)
    except RecursionError:  # a candidate nested thousands of folders
        subprocess.run(["rm", "-rf", "--", folder], check=False, stderr=subprocess.DEVNULL)


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

    def trials(self, job: TrialJob) -> TrialReport:
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
            worker.close()
