"""What one property check says."""

from dataclasses import field
from typing import Literal

from attnlab.records.base import record

Outcome = Literal["passed", "failed", "skipped", "error"]


@record
class CheckResult:
    """What one property check says. A failed one ends with what to do next."""

    id: str
    title: str
    outcome: Outcome
    message: str = ""
    file: str = ""
    line: int | None = None
    advice: str = ""
    folded_under: str = ""  # the more basic failed check that explains this one
    sizes: dict[str, int] = field(default_factory=dict)  # where it failed
    trusted: bool = True  # False: rests on the candidate process's own word
    shown: str = ""  # the dtype in which a plain call at these sizes shows the failure, if any
    reason: str = ""  # of an error: "no-weights", "crashed", "timeout", "memory", "too-much", ...
