"""The trusted process: it takes jobs, asks children, and computes every result itself.

The pipeline is `grading.pipeline.run_job`. This file gives it children, each behind a channel with
a deadline, and turns every way in which a child can end into `Died`.
"""

import gc
import json
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from attnlab.candidate.host import Died
from attnlab.grading.pipeline import run_job
from attnlab.probe.reference import BadReference, ReferenceCache
from attnlab.records import Job, Limits, Report, from_json, plain, to_json
from attnlab.records.position import PositionJob, PositionReport
from attnlab.records.program import ProgramJob, ProgramReport
from attnlab.records.trial import FileTrialReport, ProgramTrialJob, ProgramTrialReport, TrialJob
from attnlab.worker.child import BROKEN, MEMORY
from attnlab.worker.tensors import Malformed, pack, unpack
from attnlab.worker.wire import KILLED, Channel, TooLong, receive, receive_line, send

GRACE = 0.2  # seconds for a child that closed its socket to end by itself, with a clearer status


def serve(job: socket.socket, zygote: socket.socket) -> None:
    """Answer each request with one record, until the client closes the socket."""
    judge = Judge(zygote)
    for number in count():
        try:
            message = receive(job)
        except EOFError:
            return
        if number == 1:  # all modules are imported: they need no garbage collection
            gc.collect()
            gc.freeze()
        name, _, text = message.partition(b"\n")
        kind, answer = HANDLERS[name.decode()]
        send(job, to_json(answer(judge, from_json(kind, text))).encode())


class Judge:
    """State that lasts from one request to the next."""

    def __init__(self, zygote: socket.socket) -> None:
        self.spawn = partial(Child, zygote)
        self.references = ReferenceCache()
        self.right_programs: dict[str, Any] = {}  # their results, by program and seed

    def run_job(self, job: Job) -> Report:
        """Grade or trace a candidate in a child."""
        try:
            return run_job(job, self.spawn, self.references)
        except BadReference as error:
            return Report(
                outcome="error",
                message=str(error),
                hint="this is a fault of the challenge, not of your file; attnlab check shows it",
            )
        except Exception as error:  # a fault of attnlab must reach the user as one line
            where = traceback.extract_tb(error.__traceback__)[-1]
            return Report(
                outcome="error",
                message=f"{_fault(error)} ({Path(where.filename).name}:{where.lineno})",
                hint="this is a fault of attnlab; ATTNLAB_DEBUG=1 shows the traceback to report",
            )

    def run_program(self, job: ProgramJob) -> ProgramReport:
        """Train or grade a program of several files."""
        from attnlab.grading.program_run import run_program

        try:
            return run_program(job, self.spawn, self.references, self.right_programs)
        except Exception as error:
            return ProgramReport(outcome="error", message=_fault(error))

    def position(self, job: PositionJob) -> PositionReport:
        """Compute tables and plots from the references: there is no candidate, and no child."""
        from attnlab.references.position_report import build_position_report

        try:
            return build_position_report(job)
        except Exception as error:
            return PositionReport(outcome="error", message=_fault(error))

    def trials(self, job: TrialJob) -> FileTrialReport:
        """Grade mutants of right files in one process, without a child for each."""
        from attnlab.mutation_testing.fork_pool import try_all

        try:
            return try_all(job)
        except Exception as error:
            return FileTrialReport(fault=_fault(error))

    def program_trials(self, job: ProgramTrialJob) -> ProgramTrialReport:
        """Mutants of right programs, as those of right files."""
        from attnlab.mutation_testing.program_trials import try_programs

        try:
            return try_programs(job)
        except Exception as error:
            return ProgramTrialReport(fault=_fault(error))


Answer = Report | PositionReport | FileTrialReport | ProgramReport | ProgramTrialReport
# What may be asked, by the name of the record that is sent.
HANDLERS: dict[str, tuple[type, Callable[[Judge, Any], Answer]]] = {
    kind.__name__: (kind, answer)
    for kind, answer in (
        (Job, Judge.run_job),
        (PositionJob, Judge.position),
        (TrialJob, Judge.trials),
        (ProgramJob, Judge.run_program),
        (ProgramTrialJob, Judge.program_trials),
    )
}


def _fault(error: Exception) -> str:
    """A fault of attnlab in one line; prints the traceback where ATTNLAB_DEBUG is set."""
    if os.environ.get("ATTNLAB_DEBUG"):
        traceback.print_exc(file=sys.stderr)
    return f"the judge failed: {type(error).__name__}: {error}"


class Orphaned(BaseException):
    """The zygote has ended, so there will be no more children: the judge ends too."""


class Child:
    """A candidate's process, as a `Host`."""

    def __init__(self, zygote: socket.socket, limits: Limits, own: bool, deadline: float) -> None:
        self.zygote = zygote
        self._request({"op": "fork", "limits": plain(limits), "own": own})
        line, fds, _, _ = socket.recv_fds(zygote, 4096, 2)
        if not line:
            raise Orphaned
        self.pid = json.loads(line)["pid"]
        self.out = fds[1]
        self.sock = socket.socket(fileno=fds[0])
        self.pidfd = _open_pidfd(self.pid)
        self.channel = Channel(self.sock, self.out, deadline, limits.output, self.pidfd)
        self.closed = False
        hello = self._answer()
        self.isolation = tuple(hello.get("isolation", ()))
        self.missing = tuple(hello.get("missing", ()))

    def ask(self, verb: str, **args: Any) -> dict[str, Any]:
        """The child's answer; raises `Died` when it can give none any more."""
        if self.closed:
            raise Died("crashed", "had ended before")
        try:
            self.channel.send(pack({"verb": verb, "args": args}))
        except TimeoutError:
            raise self._died("timeout", "did not take its input in time") from None
        except EOFError:
            raise self._death_of_child() from None
        return self._answer()

    def set_deadline(self, deadline: float) -> None:
        self.channel.deadline = deadline

    def _answer(self) -> dict[str, Any]:
        try:
            answer = unpack(self.channel.receive())
        except TimeoutError:
            raise self._died("timeout", "did not answer in time") from None
        except EOFError:
            raise self._death_of_child() from None
        except (TooLong, Malformed, MemoryError) as error:
            raise self._died("crashed", f"broke the protocol ({error})") from None
        if not isinstance(answer, dict):
            raise self._died("crashed", "broke the protocol (not a message)")
        return answer

    def _death_of_child(self) -> Died:
        status = self._reap(GRACE)
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            if number == signal.SIGXCPU:
                return Died("timeout", "used up its CPU time")
            if number == signal.SIGKILL:
                return Died("crashed", KILLED)
            return Died("crashed", f"was killed by {_signal(number)}")
        code = os.WEXITSTATUS(status)
        if code == MEMORY or b"bad_alloc" in self.channel.output[-4000:]:
            return Died("memory", "ran out of memory")
        if code == BROKEN:
            return Died("crashed", "broke the process that runs it")
        return Died("crashed", f"ended the process with exit status {code}")

    def _died(self, reason: Any, message: str) -> Died:
        self._reap(0.0)
        return Died(reason, message)

    def close(self) -> None:
        if not self.closed:
            self._reap(0.0)

    @property
    def printed(self) -> str:
        return self.channel.output.decode("utf-8", "replace")

    def _reap(self, grace: float) -> int:
        """End the process; returns its wait status. It has `grace` seconds to end by itself."""
        self._request({"op": "reap", "pid": self.pid, "grace": grace})
        answer = receive_line(self.zygote)
        if not answer:
            raise Orphaned
        self.channel.drain()
        self.sock.close()
        os.close(self.out)
        if self.pidfd is not None:
            os.close(self.pidfd)
        self.closed = True
        return int(json.loads(answer)["status"])

    def _request(self, request: dict[str, Any]) -> None:
        try:
            self.zygote.sendall(json.dumps(request).encode() + b"\n")
        except OSError:
            raise Orphaned from None


def _open_pidfd(pid: int) -> int | None:
    """A file descriptor that becomes readable when the process ends; None where there is none."""
    if sys.platform == "linux":
        with suppress(OSError):
            return os.pidfd_open(pid)
    return None


def _signal(number: int) -> str:
    """The name of a signal; real-time signals between the first and the last have none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
