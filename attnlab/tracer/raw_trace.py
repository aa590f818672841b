"""What a recorder saw, as records that can leave the process: before any name is given."""

from __future__ import annotations

import linecache
import os
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import CodeType
from typing import Any

from attnlab.records.base import plain, record
from attnlab.records.trace import Attention, Backward, Finding, Guard, Heat, Op
from attnlab.tracer.axes import Accident, Axes, follow
from attnlab.tracer.recorder import MAX_ROWS, OURS, TORCH, Fall, Recorder
from attnlab.tracer.rows import Out, Row, replay, whole

Shape = tuple[int, ...]


@record
class Masked:
    """A softmax row in which every key is -inf: how many there are, and the first one's index."""

    row: int
    count: int
    first: tuple[int, ...]


@record
class Measured:
    """What a second run found at one row, whose values deserved a closer look."""

    row: int
    sources: tuple[str, ...] = ()  # weights and inputs that held NaN or infinities: "q.weight"
    reach: float | None = None  # the largest magnitude that the operation makes in float64
    ranges: tuple[float, ...] = ()  # the largest magnitude of each operand
    sums: tuple[float, int] | None = None  # the least row sum, and how many rows are not 1


@record
class RawFall:
    """What raised: an operation with its operands, or (op = "") a line of Python."""

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
    fits: tuple[str, ...] = ()  # changes with which it runs, the smallest first


@dataclass(frozen=True)
class Known:
    """What is known of a run's axes before it: names for each input's, and sizes for names."""

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
    fall: RawFall | None = None
    masked: Masked | None = None
    tainted: tuple[int, ...] | None = None  # operands of the first NaN's row that had one before
    measured: tuple[Measured, ...] = ()
    notes: tuple[str, ...] = ()
    # What the axes are, by where they came from; those of each op stand in the op.
    input_axes: tuple[tuple[str, ...], ...] = ()
    fall_axes: tuple[tuple[str, ...], ...] = ()  # of the operands of what raised
    accidents: tuple[Finding, ...] = ()  # meetings of axes that should not meet
    sizes: dict[str, int] = field(default_factory=dict)  # what the names of axes stand for
    # What else was asked for.
    backward: Backward | None = None
    attention: tuple[Attention, ...] = ()
    values: tuple[Heat, ...] = ()
    guards: tuple[Guard, ...] = ()


def sound(raw: RawTrace) -> bool:
    """Every row and operand that is referred to exists, and comes before what refers to it."""
    inputs, ops, fall = -len(raw.inputs), raw.ops, raw.fall
    return (
        len(raw.operands) == len(ops)
        and len(raw.input_kinds) == len(raw.input_names) == len(raw.inputs)
        and all(op.index == i and len(op.axes) == len(op.shape) for i, op in enumerate(ops))
        and all(inputs <= p < op.index for op in ops for p in op.parents)
        and (fall is None or all(inputs <= p < len(ops) for p in fall.parents))
        and (fall is None or bool(fall.operands) or not fall.parents)
        and all(0 <= m.row < len(ops) for m in raw.measured)
        and all(f.index is None or 0 <= f.index < len(ops) for f in raw.accidents)
        and all(row is None or 0 <= row < len(ops) for row in _referred(raw))
        and (raw.backward is None or (raw.backward.origin or 0) in range(max(len(ops), 1)))
    )


def _referred(raw: RawTrace) -> Iterator[int | None]:
    """Rows that what was asked for besides refers to."""
    yield from (heat.index for heat in raw.values)
    for seen in raw.attention:
        yield from (seen.scores, seen.mask, seen.weights, seen.context)
        yield from (head.weights.index for head in seen.heads)


def collect(
    recorder: Recorder,
    fall: RawFall | None = None,
    known: Known | None = None,
    **more: Any,
) -> RawTrace:
    """The rows of a finished run; `known` names the axes, `more` are fields of the `RawTrace`."""
    seen = replay(recorder)
    shapes = [whole(shape) for _, _, shape in recorder.inputs]
    axes = follow(seen, shapes, known.inputs, known.sizes) if known is not None else None
    ops: list[Op] = []
    operands: list[tuple[Shape, ...]] = []
    places: dict[tuple[CodeType | None, int], tuple[str, str]] = {}
    for row in seen.rows:
        spot = (row.code, row.line)
        at = places.get(spot) or places.setdefault(spot, place(*spot))
        for out in row.outs:
            ops.append(_op(row, out, at, ops, axes))
            operands.append(row.operands)
    return RawTrace(
        ops=tuple(ops),
        operands=tuple(operands),
        notes=tuple(_notes(recorder)),
        fall=replace(fall, parents=seen.fall_parents) if fall is not None and fall.op else fall,
        input_axes=tuple(axes.inputs) if axes else (),
        sizes=dict(known.sizes) if known is not None else {},
        fall_axes=tuple(axes.fall) if axes else (),
        accidents=tuple(_accident(a, ops[a.row]) for a in axes.accidents) if axes else (),
        **more,
    )


def _accident(told: Accident, op: Op) -> Finding:
    return Finding(
        rule=told.rule,
        file=op.file,
        line=op.line,
        op=op.op,
        severity=told.severity,
        message=told.message,
        index=op.index,
    )


def _notes(recorder: Recorder) -> Iterator[str]:
    if recorder.full:
        yield f"only the first {MAX_ROWS} operations are shown"
    if recorder.unseen:
        yield f"{recorder.unseen} operations on nested or special tensors are not shown"


def _op(row: Row, out: Out, at: tuple[str, str], ops: list[Op], axes: Axes | None) -> Op:
    low, high, mean = out.numbers
    nan, inf = low != low, _infinite(low, high)  # noqa: PLR0124 - NaN is not itself
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


def _infinite(low: float | None, high: float | None) -> bool:
    return float("inf") in (high, low) or float("-inf") in (low, high)


def place(code: CodeType | None, line: int) -> tuple[str, str]:
    """The file as a person would name it, and the line's source."""
    if code is None:
        return "", ""
    source = linecache.getline(code.co_filename, line).strip()
    return shown(code.co_filename), source


def shown(file: str) -> str:
    """A path below the working folder is shown relative to it."""
    return file.removeprefix(os.getcwd() + os.sep)  # noqa: PTH109 - a Path costs ten times as much


def fall_of(recorder: Recorder, error: BaseException, file: str, entry: object = None) -> RawFall:
    """Where a run ended: at the operation that raised, else at the candidate's deepest line."""
    fall = recorder.fall
    if fall is not None and fall.error is error:
        return _from_op(fall)
    told_of = (error.__cause__, error.__context__)
    if fall is not None and any(fall.error is e for e in told_of):
        told = f"{first_line(error)} (from {type(fall.error).__name__}: {first_line(fall.error)})"
        return replace(_from_op(fall), error=type(error).__name__, message=told)
    line, at, source = raised_at(error, file, entry)
    return RawFall(
        op="",
        file=at,
        line=line,
        source=source,
        module="",
        error=type(error).__name__,
        message=first_line(error),
    )


def _from_op(fall: Fall) -> RawFall:
    file, source = place(fall.code, fall.line)
    return RawFall(
        op=plain_name(fall.op),
        file=file,
        line=fall.line,
        source=source,
        module=fall.module,
        error=type(fall.error).__name__,
        message=first_line(fall.error),
        operands=tuple(tuple(shape) for _, _, shape in fall.ins),
        dtypes=tuple(str(d).removeprefix("torch.") for d in fall.dtypes),
        fits=_fits(fall),
    )


def _fits(fall: Fall) -> tuple[str, ...]:
    op = plain_name(fall.op)
    try:
        from attnlab.tracer.crash.operand_names import operand_names
        from attnlab.tracer.crash.suggest import remedies

        return remedies(fall.again, op, operand_names(fall.error, fall.code, op))
    except Exception:  # a suggestion is worth no crash
        return ()


def raised_at(error: BaseException, file: str, entry: object = None) -> tuple[int, str, str]:
    """Line, file and source of the deepest frame in `file`, else of the deepest one of a user.

    Where there is none, because a call did not fit: of `entry`, the function that was called.
    """
    frames = traceback.extract_tb(error.__traceback__)
    mine = [f for f in frames if f.filename == file]
    theirs = [f for f in frames if not f.filename.startswith((TORCH, *OURS))]
    if not mine and not theirs:
        code = getattr(entry, "__code__", None)
        return (code.co_firstlineno, *place(code, code.co_firstlineno)) if code else (0, "", "")
    frame = (mine or theirs)[-1]
    return frame.lineno or 0, shown(frame.filename), (frame.line or "").strip()


def first_line(error: BaseException) -> str:
    """The first line of an exception's message, whatever its `__str__` does."""
    try:
        text = str.strip(str(error))
    except BaseException:  # a hostile __str__ must not take the answer down
        text = "(the exception's message cannot be read)"
    return str.partition(text, "\n")[0][:500]


def describe(error: BaseException, file: str, entry: object = None) -> dict[str, Any]:
    """An exception as plain values."""
    line, at, source = raised_at(error, file, entry)
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
