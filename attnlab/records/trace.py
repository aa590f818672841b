"""The nouns of a trace: operations, findings, the crash, and what else was asked about a run."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from attnlab.records.base import record

Severity = Literal["note", "warning", "error"]


EXTRAS = (
    "aten",
    "backward",
    "time",
    "memory",
    "symbolic",
    "compile",
    "attention",
    "values",
    "dtype",
    "device",
    "cost",
)


@record
class TraceOptions:
    """What a trace shows beyond its rows, and how its inputs are filled."""

    aten: bool = False  # the kernels below each operation
    backward: bool = False  # gradients, by parameter and by operation
    time: bool = False  # seconds of each operation
    memory: bool = False  # bytes of each operation's output
    symbolic: bool = False  # confirm size accidents with symbolic shapes (imports the compiler)
    compile: bool = False  # how torch.compile captures the run (imports the compiler)
    attention: bool = False  # per-head maps of the attention weights
    values: tuple[str, ...] = ()  # names ("scores") or lines ("17") whose values are shown
    dtype: Literal["float32", "float64", "bfloat16", "float16"] = "float32"
    device: str = "cpu"
    fill: Literal["noise", "small", "arange", "ones", "eye"] = "noise"
    calls: int = 1  # of the same module, one after the other
    feed: str = ""  # the argument that takes the cache of the call before; "" = by its usual names
    decode: bool = False  # each call after the first has one new position
    cost: bool = False  # multiply-adds, bytes and weights
    step: int = 0  # of a file's optimizer, from 1: trace what leads to it; 0 = the first call

    @property
    def extras(self) -> tuple[str, ...]:
        """The flags that ask for more than the rows of a run as it comes: each takes a run more."""
        plain = TraceOptions()
        return tuple(f"--{n}" for n in EXTRAS if getattr(self, n) != getattr(plain, n))


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
    kernels: tuple[Kernel, ...] = ()  # below it, where they were asked for
    seconds: float | None = None
    bytes: int | None = None  # that it allocated
    flops: int | None = None  # of its products
    grad: float | None = None  # the norm of the gradient of its output
    call: int = 1  # the number of the call in which it ran

    @property
    def contiguous(self) -> bool:
        """Whether its entries lie in memory in the order of its axes."""
        step = 1
        for n, stride in reversed(list(zip(self.shape, self.stride, strict=False))):
            if n != 1 and stride != step:
                return 0 in self.shape
            step *= n
        return True


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
    inputs: tuple[str, ...] = ()  # those that an operand is, or is made of in few steps alone
    call: int = 1  # which of several calls raised


@record
class GraphBreak:
    """A line at which torch.compile ends a graph and goes on in Python."""

    file: str
    line: int
    source: str
    reason: str


@record
class Recompilation:
    """What another size of one axis costs: calls with two larger sizes, one after the other."""

    axis: str
    sizes: tuple[int, ...]
    compiled: tuple[bool, ...]  # whether each was compiled anew
    reason: str = ""  # the first guard that failed, in PyTorch's words


@record
class Compilation:
    """How torch.compile captures a call; no kernels are generated."""

    graphs: int
    breaks: tuple[GraphBreak, ...]
    recompilations: tuple[Recompilation, ...] = ()
    problem: str = ""  # why it could not be looked at, or not to the end


@record
class Trace:
    ops: tuple[Op, ...] = ()
    findings: tuple[Finding, ...] = ()
    crash: Crash | None = None
    notes: tuple[str, ...] = ()  # what the trace could not see, and why
    sizes: dict[str, int] = field(default_factory=dict)  # what the names of axes stand for
    backward: Backward | None = None
    attention: tuple[Attention, ...] = ()
    values: tuple[Heat, ...] = ()
    guards: tuple[Guard, ...] = ()
    compilation: Compilation | None = None
    calls: tuple[NextCall, ...] = ()  # those after the first
    weights: tuple[Weight, ...] = ()

    @property
    def grave(self) -> tuple[Finding, ...]:
        """The findings that are more than notes."""
        return tuple(finding for finding in self.findings if finding.severity != "note")

    @property
    def outcome(self) -> Literal["ok", "found", "crashed"]:
        return "crashed" if self.crash else "found" if self.grave else "ok"


@record
class NextCall:
    """One more call of the same module, fed with the cache of the one before."""

    number: int
    total: int  # how many were asked for; the last one may have raised before
    inputs: str  # "1 token, cache 4 -> 5"
    trace: Trace


# ---------------------------------------------------------------- what else was asked


@record
class Kernel:
    """One aten kernel below an operation."""

    op: str
    shape: tuple[int, ...]
    dtype: str
    flops: int = 0  # as FlopCounterMode counts: 2 for a multiplication and an addition


@record
class Weight:
    """One parameter or buffer; one that has several names has the first."""

    name: str
    shape: tuple[int, ...]
    bytes: int
    learned: bool
    also: tuple[str, ...] = ()  # its other names, where it is tied


@record
class ParameterGradient:
    name: str
    shape: tuple[int, ...]
    norm: float | None  # None: no gradient reached it
    finite: bool = True


@record
class Backward:
    """One backward pass from the sum of the output times a fixed random cotangent."""

    parameters: tuple[ParameterGradient, ...] = ()
    inputs: tuple[ParameterGradient, ...] = ()  # those of floating-point numbers
    origin: int | None = None  # the row whose output first got a gradient that is not finite
    message: str = ""  # what that was, or why there are no gradients


@record
class Heat:
    """A matrix of values to be drawn: two axes of a tensor, the others held at one index."""

    title: str  # "scores[0, 1]  (S, S') on line 17"
    rows: tuple[tuple[float, ...], ...]
    axes: tuple[str, str] = ("", "")
    index: int | None = None  # the row it is the output of
    cut: bool = False  # True: more rows or columns than are given


@record
class Head:
    """The attention weights of one head of the first batch entry."""

    number: int
    weights: Heat
    entropy: float  # nats, mean over the queries that may see a key
    largest: float  # the mean of each query's largest weight


@record
class Attention:
    """One attention by its roles; each role is the index of a row, None where it was not found."""

    line: int
    file: str
    scores: int | None
    mask: int | None
    weights: int | None
    context: int | None
    heads: tuple[Head, ...] = ()
    coverage: float | None = None  # share of (query, key) pairs that may attend
    causal: bool | None = None  # no query has weight on a later key; None: cross-attention
    sums: tuple[float, float] | None = None  # the least and greatest sum of a query's weights
    fused: bool = False  # recomputed beside a fused kernel
    module: str = ""
    message: str = ""  # one sentence on what is to be seen


@record
class Guard:
    """A relation of sizes that the run depends on."""

    relation: str  # "S == hd"
    file: str
    line: int
    source: str = ""
    op: str = ""
