"""What a recorder saw, as records that can leave the process, before rows are named."""

import linecache
import math
import os
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import CodeType
from typing import Any

from attnlab.records.base import plain, record
from attnlab.records.trace import (
    Attention,
    Backward,
    Compilation,
    Finding,
    Guard,
    Heat,
    Op,
    Severity,
    Weight,
)
from attnlab.tracer.axes import Axes, follow
from attnlab.tracer.barred_rows import Barred
from attnlab.tracer.flow import Flow, read_flow
from attnlab.tracer.recorder import MAX_ROWS, OURS, TORCH, FailedOperation, Recorder
from attnlab.tracer.rows import OutputRow, Row, plain_sizes, replay

Shape = tuple[int, ...]


@record
class Measured:
    """What a second run measured at one row."""

    row: int
    tainted: tuple[int, ...] = ()  # operands that had a NaN before it ran
    # Of a softmax: how many rows of its operand are -inf everywhere, and the first one's index.
    masked: tuple[int, tuple[int, ...]] | None = None
    sources: tuple[str, ...] = ()  # weights and inputs that held NaN or infinities: "q.weight"
    reach: float | None = None  # the largest magnitude that the operation makes in float64
    ranges: tuple[float, ...] = ()  # the largest magnitude of each operand
    sums: tuple[float, int] | None = None  # the least row sum, and how many rows are not 1


@record
class Fit:
    """A change with which the operation that raised would have run."""

    text: str
    operand: int = -1  # the one that it looks at in another way; -1 where the call is another one
    axes: tuple[int, ...] = ()  # of that operand, in their new order; -1 for a new one of size 1
    into: Shape = ()  # what a reshape makes of it


@record
class RawCrash:
    """What raised: an operation with its operands, or a line of Python (op = "")."""

    op: str
    file: str
    line: int
    source: str
    module: str
    error: str
    message: str
    parents: tuple[int, ...] = ()
    operands: tuple[Shape, ...] = ()
    dtypes: tuple[str, ...] = ()
    fits: tuple[Fit, ...] = ()  # the smallest first


@dataclass(frozen=True)
class KnownAxes:
    """What is known of a run's axes: names for the axes of each input, and the sizes of names."""

    inputs: Sequence[Sequence[str] | None]
    sizes: Mapping[str, int]


@record
class RawTrace:
    """One run. `operands[i]` are the shapes of the tensors that op i took."""

    ops: tuple[Op, ...] = ()
    operands: tuple[tuple[Shape, ...], ...] = ()
    inputs: tuple[Shape, ...] = ()
    input_names: tuple[str, ...] = ()
    input_kinds: tuple[str, ...] = ()  # dtype words: float, int, bool
    crash: RawCrash | None = None
    measured: tuple[Measured, ...] = ()
    barred: tuple[Barred, ...] = ()
    notes: tuple[str, ...] = ()
    # Axis names by origin; those of each op are in the op.
    input_axes: tuple[tuple[str, ...], ...] = ()
    crash_axes: tuple[tuple[str, ...], ...] = ()  # of the operands of what raised
    findings: tuple[Finding, ...] = ()  # from the axes and from the backward pass
    sizes: dict[str, int] = field(default_factory=dict)  # what the names of axes stand for
    # Views that the options asked for.
    backward: Backward | None = None
    attention: tuple[Attention, ...] = ()
    values: tuple[Heat, ...] = ()
    guards: tuple[Guard, ...] = ()
    compilation: Compilation | None = None
    weights: tuple[Weight, ...] = ()
    flow: Flow = field(default_factory=Flow)


def is_consistent(raw: RawTrace) -> bool:
    """True if every referenced row exists and comes before what refers to it."""
    inputs, ops, crash = -len(raw.inputs), raw.ops, raw.crash
    return (
        len(raw.operands) == len(ops)
        and len(raw.input_kinds) == len(raw.input_names) == len(raw.inputs)
        and all(op.index == i and len(op.axes) == len(op.shape) for i, op in enumerate(ops))
        and all(inputs <= p < op.index for op in ops for p in op.parents)
        and (crash is None or all(inputs <= p < len(ops) for p in crash.parents))
        and (crash is None or bool(crash.operands) or not crash.parents)
        and all(0 <= m.row < len(ops) for m in raw.measured)
        and all(0 <= b.row < len(ops) for b in raw.barred)
        and all(f.index is None or 0 <= f.index < len(ops) for f in raw.findings)
        and all(row is None or 0 <= row < len(ops) for row in _referenced_rows(raw))
        and all(inputs <= row < len(ops) for row in _rows_of_flow(raw.flow))
        and (raw.backward is None or (raw.backward.origin or 0) in range(max(len(ops), 1)))
    )


def _referenced_rows(raw: RawTrace) -> Iterator[int | None]:
    """Rows that the views refer to."""
    yield from (heat.index for heat in raw.values)
    for seen in raw.attention:
        yield from (seen.scores, seen.mask, seen.weights, seen.context)
        yield from (head.weights.index for head in seen.heads)


def _rows_of_flow(flow: Flow) -> Iterator[int]:
    yield from flow.outputs
    yield from flow.dropped
    yield from (row for row, _ in (*flow.numbers, *flow.unread))
    yield from (row for held in flow.held for row in held.rows)


def build_raw_trace(
    recorder: Recorder, crash: RawCrash | None = None, known: KnownAxes | None = None, **more: Any
) -> RawTrace:
    """The rows of a finished run; `known` names the axes, `more` are fields of the `RawTrace`."""
    seen = replay(recorder)
    shapes = [plain_sizes(shape) for _, _, shape in recorder.inputs]
    axes = follow(seen, shapes, known.inputs, known.sizes) if known is not None else None
    ops: list[Op] = []
    operands: list[tuple[Shape, ...]] = []
    places: dict[tuple[CodeType | None, int], tuple[str, str]] = {}
    for row in seen.rows:
        spot = (row.code, row.line)
        at = places.get(spot) or places.setdefault(spot, source_location(*spot))
        for out in row.outs:
            ops.append(_op(row, out, at, ops, axes))
            operands.append(row.operands)
    return RawTrace(
        ops=tuple(ops),
        operands=tuple(operands),
        notes=tuple(_notes(recorder)),
        crash=replace(crash, parents=seen.crash_parents)
        if crash is not None and crash.op
        else crash,
        input_axes=tuple(axes.inputs) if axes else (),
        sizes=dict(known.sizes) if known is not None else {},
        crash_axes=tuple(axes.crash) if axes else (),
        findings=tuple(finding_at(ops[a.row], a.rule, a.message, a.severity) for a in axes.findings)
        if axes
        else (),
        flow=read_flow(recorder, seen),
        barred=tuple(recorder.barred.found()),
        **more,
    )


def finding_at(op: Op, rule: str, message: str, severity: Severity = "warning") -> Finding:
    """A finding at the row of an operation."""
    return Finding(
        rule=rule,
        file=op.file,
        line=op.line,
        op=op.op,
        severity=severity,
        message=message,
        index=op.index,
    )


def line_of(row: Op | Finding, file: str) -> str:
    """`line 63`, or `model.py:63` where that is not the file that is spoken of."""
    return (
        f"line {row.line}" if row.file == file else f"{row.file.rpartition(os.sep)[2]}:{row.line}"
    )


def place_of(row: Op | Finding, file: str) -> str:
    """`on line 63`, or `at model.py:63`."""
    return f"{'on' if row.file == file else 'at'} {line_of(row, file)}"


def only_file(raw: RawTrace) -> str:
    """The file of all rows; "" where there are several."""
    return raw.ops[0].file if len({op.file for op in raw.ops}) == 1 else ""


def _notes(recorder: Recorder) -> Iterator[str]:
    if recorder.full:
        yield f"only the first {MAX_ROWS} operations are shown"
    if recorder.unseen:
        yield f"{recorder.unseen} operations on nested or special tensors are not shown"


def _op(row: Row, out: OutputRow, at: tuple[str, str], ops: list[Op], axes: Axes | None) -> Op:
    low, high, mean = out.numbers
    nan = low != low  # noqa: PLR0124 - NaN is not itself
    inf = not {math.inf, -math.inf}.isdisjoint((low, high))
    if out.kin is not None and out.kin >= 0:
        kin = ops[out.kin]  # the same elements, seen otherwise
        low, high, mean, nan, inf = kin.min, kin.max, kin.mean, kin.nan, kin.inf
    if out.dtype.is_complex:  # complex numbers have no order
        low = high = mean = None
    return Op(
        index=len(ops),
        op=plain_name(row.op),
        line=row.line,
        file=at[0],
        source=at[1],
        shape=out.shape,
        axes=axes.outs[len(ops)] if axes else tuple(map(str, out.shape)),
        dtype=str(out.dtype).removeprefix("torch."),
        stride=out.stride,
        view=out.view,
        min=low,
        max=high,
        mean=mean,
        nan=nan,
        inf=inf,
        module=row.module,
        parents=row.parents,
    )


def plain_name(op: str) -> str:
    """`__getitem__` as `getitem`; an in-place `add_` keeps its mark."""
    return op.strip("_") if op.startswith("__") else op


def source_location(code: CodeType | None, line: int) -> tuple[str, str]:
    """The displayed path of the file, and the source of the line."""
    if code is None:
        return "", ""
    source = linecache.getline(code.co_filename, line).strip()
    return display_path(code.co_filename), source


def display_path(file: str) -> str:
    """A path below the working folder is shown relative to it."""
    return file.removeprefix(os.getcwd() + os.sep)  # noqa: PTH109 - a Path costs ten times as much


def crash_of(recorder: Recorder, error: BaseException, file: str, entry: object = None) -> RawCrash:
    """The crash of a run: at the operation that raised, else at the candidate's deepest line."""
    crash = recorder.failure
    if crash is not None and crash.error is error:
        return _from_op(crash)
    causes = (error.__cause__, error.__context__)
    if crash is not None and any(crash.error is cause for cause in causes):
        told = f"{first_line(error)} (from {type(crash.error).__name__}: {first_line(crash.error)})"
        return replace(_from_op(crash), error=type(error).__name__, message=told)
    line, at, source = raise_location(error, file, entry)
    return RawCrash(
        op="",
        file=at,
        line=line,
        source=source,
        module="",
        error=type(error).__name__,
        message=first_line(error),
    )


def _from_op(crash: FailedOperation) -> RawCrash:
    file, source = source_location(crash.code, crash.line)
    return RawCrash(
        op=plain_name(crash.op),
        file=file,
        line=crash.line,
        source=source,
        module=crash.module,
        error=type(crash.error).__name__,
        message=first_line(crash.error),
        operands=tuple(tuple(shape) for _, _, shape in crash.ins),
        dtypes=tuple(str(d).removeprefix("torch.") for d in crash.dtypes),
        fits=_fits(crash),
    )


def _fits(crash: FailedOperation) -> tuple[Fit, ...]:
    op = plain_name(crash.op)
    try:
        from attnlab.tracer.crash.operand_names import operand_names
        from attnlab.tracer.crash.suggest import suggest_fixes

        return suggest_fixes(crash.call, op, operand_names(crash.error, crash.code, op))
    except Exception:  # a suggestion must never crash the trace
        return ()


def raise_location(error: BaseException, file: str, entry: object = None) -> tuple[int, str, str]:
    """Line, file and source of the deepest frame in `file`, which may be a folder that ends with a
    slash, else of the deepest one of a user.

    Where there is none, because a call did not fit: of `entry`, the function that was called.
    """
    frames = traceback.extract_tb(error.__traceback__)
    folder = file if file.endswith("/") else f"{file}/"
    inside = (f for f in frames if f.filename == file or f.filename.startswith(folder))
    mine = [*inside] if file else []
    theirs = [f for f in frames if not f.filename.startswith((TORCH, *OURS))]
    if not mine and not theirs:
        code = getattr(entry, "__code__", None)
        return (
            (code.co_firstlineno, *source_location(code, code.co_firstlineno))
            if code
            else (0, "", "")
        )
    frame = (mine or theirs)[-1]
    return frame.lineno or 0, display_path(frame.filename), (frame.line or "").strip()


DETAILS = 2  # lines below one that announces them


def first_line(error: BaseException) -> str:
    """The first line of an exception's message, whatever its `__str__` does; with the next one
    where it ends in a colon, as that of load_state_dict does."""
    try:
        text = str.strip(str(error))
    except BaseException:  # a hostile __str__ must not take the answer down
        text = "(the exception's message cannot be read)"
    first, _, rest = str.partition(text, "\n")
    if first.endswith(":") and rest:
        first = f"{first} {' '.join(line.strip() for line in rest.splitlines()[:DETAILS])}"
    return first[:500]


def describe_error(error: BaseException, file: str, entry: object = None) -> dict[str, Any]:
    """An exception as plain values."""
    line, at, source = raise_location(error, file, entry)
    message = first_line(error)
    memory = isinstance(error, MemoryError) or "allocate memory" in message
    return plain(  # type: ignore[no-any-return]
        {
            "error": type(error).__name__,
            "kinds": [k.__name__ for k in type(error).__mro__[1:-1]],
            "message": message,
            "file": at,
            "line": line,
            "source": source,
            "memory": memory,
        }
    )
