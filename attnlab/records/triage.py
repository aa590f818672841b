"""What a triage says: what it looked at, and what it suspects."""

from typing import Literal

from attnlab.records.base import record
from attnlab.records.trace import Severity

TriageOutcome = Literal["found", "nothing-found", "crashed", "timeout", "error"]


@record
class Suspicion:
    """One likely cause, with its evidence and the experiment that would settle it."""

    rank: int  # from 1, the likeliest
    layer: Literal["trace", "unused", "property", "training"]
    rule: str
    severity: Severity
    confidence: float  # 0-1
    file: str
    line: int | None
    message: str  # what was seen, with numbers
    evidence: str  # the row or the values that it rests on
    experiment: str
    meaning: str = ""  # what it usually means


@record
class Triage:
    """The ranked list, and what stands below it."""

    target: str
    outcome: TriageOutcome
    suspicions: tuple[Suspicion, ...] = ()
    looked_at: tuple[str, ...] = ()
    not_looked_at: tuple[str, ...] = ()
    message: str = ""
    advice: str = ""  # on a script that took no step
    seconds: float = 0.0
