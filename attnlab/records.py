"""The nouns of attnlab: frozen records that flow from the command line to the judge and back.

A record is made once, complete, by the stage that owns it; no later stage edits it. All of them
go to JSON and back: `to_json` needs only the standard library, `from_json` validates with pydantic,
which is imported there and not before (its import costs as much as all of `attnlab list`).
NaN and the infinities travel as the strings "NaN", "Infinity" and "-Infinity".
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, dataclass_transform

if TYPE_CHECKING:
    from pydantic import TypeAdapter

R = TypeVar("R")
FORMAT = 1


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def record(cls: type[R]) -> type[R]:
    """A frozen, keyword-only dataclass with slots."""
    return dataclass(frozen=True, kw_only=True, slots=True)(cls)


# ---------------------------------------------------------------- what is asked

Outcome = Literal["passed", "failed", "skipped", "error"]
Severity = Literal["note", "warning", "error"]
JobOutcome = Literal["ok", "crashed", "timeout", "memory", "unreadable", "refused", "error"]
GradeOutcome = Literal[
    "passed", "failed", "crashed", "timeout", "memory", "unreadable", "cannot-compare", "error"
]


@record
class Input:
    """One argument of `forward`: `mask: B S S bool forbids optional`."""

    name: str
    axes: tuple[str, ...]  # symbols ("B"), products ("3*D") or numbers ("4")
    dtype: Literal["float", "int", "bool"] = "float"
    role: Literal["data", "mask"] = "data"
    forbids: bool = True  # masks only: True in the mask means "may not be attended"
    optional: bool = False  # may be None


@record
class Position:
    """What a positional encoding promises, for `formula-match`."""

    kind: Literal["sinusoidal"] = "sinusoidal"
    form: Literal["returned", "added"] = "returned"  # forward gives the table, or x + table
    base: float = 10000.0


@record
class Refusal:
    """A call that must be refused: other sizes than the example's, and the exception expected."""

    sizes: dict[str, int]
    error: str = "any"  # an exception's name, or "any"


@record
class Contract:
    """How to build a module, how to feed it and what it promises. Sizes are in elements."""

    sizes: dict[str, int] = field(default_factory=dict)  # the example: B=2, S=4, D=8, H=2
    init: dict[str, str | int | float | bool] = field(default_factory=dict)  # "D" or a value
    inputs: tuple[Input, ...] = ()
    output: tuple[str, ...] = ()  # axes of the one output tensor; () = anything
    promises: tuple[str, ...] = ()  # see docs/challenge-format.md
    buffers: tuple[str, ...] = ()  # names that must be buffers
    vary: tuple[str, ...] = ("B", "S", "D", "H")  # symbols the judge may draw afresh
    probes: tuple[dict[str, int], ...] = ()  # extra sizes to probe, over the example's
    refusals: tuple[Refusal, ...] = ()
    position: Position | None = None
    example_mask: Literal["causal", "random", "none", "empty-rows"] = "causal"


@record
class Code:
    """A source file, read once. `file` is what messages show; `path` where it really lies."""

    file: str
    text: str
    name: str | None = None  # the class or function to build; None = find it
    path: str = ""


@record
class Own:
    """A user's own target: it runs with their import path and folder, under limits only."""

    cwd: str
    sys_path: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    module: str | None = None  # "package.module" instead of a file


@record
class Limits:
    seconds: float = 10.0  # wall clock, for the whole job
    memory: int = 2 << 30  # bytes over what the worker already holds
    output: int = 64 << 10  # bytes kept of stdout and stderr together


@record
class Job:
    """Everything the lab needs to look at one candidate, and nothing it should not know."""

    candidate: Code
    contract: Contract | None = None
    reference: str | Code | None = None  # a unit of references/, or source run in its own child
    stages: tuple[Literal["trace", "check"], ...] = ("trace", "check")
    limits: Limits = field(default_factory=Limits)
    seed: int | None = None
    own: Own | None = None


# ---------------------------------------------------------------- what was seen


@record
class Op:
    """One row of a trace: one output tensor of one operation, as the user wrote it."""

    index: int
    op: str
    line: int
    file: str
    source: str
    shape: tuple[int, ...]
    axes: tuple[str, ...]  # "B", "3*D"; the number itself where no symbol fits uniquely
    dtype: str
    stride: tuple[int, ...]
    view: bool  # shares storage with an operand
    min: float | None = None
    max: float | None = None
    mean: float | None = None
    nan: bool = False
    inf: bool = False
    module: str = ""  # dotted path of the submodule whose forward ran, "" for the target itself
    parents: tuple[int, ...] = ()  # rows whose tensors it used; -1 - i for the i-th input tensor


@record
class Operand:
    shape: tuple[int, ...]
    axes: tuple[str, ...]


@record
class Finding:
    """Something the trace noticed, with the place and one sentence."""

    rule: str
    file: str
    line: int
    op: str
    severity: Severity
    message: str
    index: int | None = None  # the row it stands at


@record
class Crash:
    """The operation that raised, with its operands as they were."""

    op: str
    file: str
    line: int
    operands: tuple[Operand, ...]
    message: str
    explanation: str
    source: str = ""
    error: str = ""  # the exception's class
    module: str = ""


@record
class Trace:
    ops: tuple[Op, ...] = ()
    findings: tuple[Finding, ...] = ()
    crash: Crash | None = None
    notes: tuple[str, ...] = ()  # what the trace could not see, and why


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
    reason: str = ""  # of an error: "no-weights", "crashed", "timeout", "memory", ...


@record
class Divergence:
    """Where a candidate parts from the reference, confirmed by replay or not."""

    file: str
    line: int
    end_line: int
    relation: str
    message: str
    confidence: float
    confirmed: bool


@record
class Report:
    """What the lab says of a job: always, also when the candidate crashed, hung or lied."""

    outcome: JobOutcome
    message: str = ""
    hint: str = ""
    target: str = ""  # what was built: "MultiHeadSelfAttention(embed_dim=8, num_heads=2)"
    trace: Trace | None = None
    checks: tuple[CheckResult, ...] = ()
    diagnosis: tuple[Divergence, ...] = ()
    output: str = ""  # captured stdout and stderr, capped
    isolation: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()  # isolation layers this machine does not give
    seconds: float = 0.0
    seed: int = 0


# ---------------------------------------------------------------- what is practised


@record
class Challenge:
    """One folder of `challenges/`. Texts are Markdown; `folder` and all below it are paths."""

    slug: str  # "attention/too-sharp"
    title: str
    kind: Literal["debug", "implement"]
    level: int  # 1 (warm-up) to 5
    symptom: str
    task: str
    class_name: str
    contract: Contract
    reference: str  # a unit of references/, or "solution.py"
    expected: tuple[str, ...]  # checks that must be among the failures
    source: str  # where the bug was really seen, or "constructed"
    hints: tuple[str, ...]
    folder: str
    file: str  # buggy.py or starter.py
    solution: str
    alternatives: tuple[str, ...]
    mutants: tuple[str, ...]
    notes: str

    @property
    def topic(self) -> str:
        return self.slug.partition("/")[0]

    @property
    def name(self) -> str:
        return self.slug.partition("/")[2]


@record
class Standing:
    """How far a user is with one challenge."""

    status: Literal["new", "started", "tried", "solved"] = "new"
    hints: int = 0
    revealed: bool = False
    tries: int = 0
    best: float = 0.0  # best score, 0-1
    solution_seen: bool = False


@record
class Verdict:
    """The grade of one file: what `attnlab grade --json` prints."""

    challenge: str
    file: str
    outcome: GradeOutcome
    score: float
    checks: tuple[CheckResult, ...]  # what to look at first stands first
    diagnosis: tuple[Divergence, ...] = ()
    isolation: tuple[str, ...] = ()
    seconds: float = 0.0
    message: str = ""
    next: str = ""
    seed: int = 0
    output: str = ""


# ---------------------------------------------------------------- JSON both ways


def plain(value: Any) -> Any:
    """A record as dicts, lists, strings and numbers that strict JSON can hold."""
    if is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, str) and not value.isascii():  # half a surrogate pair is no JSON
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {plain(str(k)): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value


def to_json(value: Any) -> str:
    """Strict JSON text of a record (or of a dict or list of records)."""
    return json.dumps(plain(value), allow_nan=False)


def from_json(kind: type[R], text: str | bytes) -> R:
    """The record of `kind` in `text`; raises `ValueError` where it does not fit."""
    record: R = _adapter(cast(Any, kind)).validate_json(text)
    return record


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)
