"""The kinds of request a client may send to the judge: a tag, the record sent, the one returned."""

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from attnlab.records import Job, Report, from_json, to_json
from attnlab.records.position import PositionJob, PositionReport
from attnlab.records.program import ProgramJob, ProgramReport
from attnlab.records.trial import ProgramTrialJob, ProgramTrialReport, TrialJob, TrialReport

# How a child ends that itself, another process or the system killed: nobody can tell which.
KILLED = "was killed, or closed its connection to the judge"
Sent = TypeVar("Sent")
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Request(Generic[Sent, Answer]):
    """One kind of request; the judge has a handler for each (`judge.HANDLERS`)."""

    tag: str
    record: type[Sent]
    answer: type[Answer]

    def encode(self, record: Sent) -> bytes:
        return f"{self.tag}\n{to_json(record)}".encode()


JOB = Request("job", Job, Report)
POSITION = Request("position", PositionJob, PositionReport)
TRIALS = Request("trials", TrialJob, TrialReport)
PROGRAM = Request("program", ProgramJob, ProgramReport)
PROGRAM_TRIALS = Request("program-trials", ProgramTrialJob, ProgramTrialReport)
REQUESTS: dict[str, Request[Any, Any]] = {
    r.tag: r for r in (JOB, POSITION, TRIALS, PROGRAM, PROGRAM_TRIALS)
}


def decode(message: bytes | bytearray) -> tuple[str, Any]:
    """The tag of a request and its record."""
    tag, _, text = message.partition(b"\n")
    request = REQUESTS[tag.decode()]
    return request.tag, from_json(request.record, text)
