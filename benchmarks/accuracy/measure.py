"""What a trace says of one right model, and of one wrong variant and its twin."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import NamedTuple

import torch

import attnlab
from attnlab.records import Finding, Op, Trace
from benchmarks.accuracy.right import Given, Model
from benchmarks.accuracy.wrong import Variant, build, twin
from benchmarks.examined import verdict_of

COINCIDE: tuple[dict[str, int], ...] = (
    {"B": 1},
    {"S": 1},
    {"B": 4, "S": 4, "D": 16, "H": 4},  # all alike
    {"B": 6, "S": 4},  # B = hd, S = H
    {"B": 4, "S": 6},  # B = H, S = hd
    {"B": 11},  # B = S
    {"S": 24, "T": 24},  # S = D
)
FEWER = {"B": 10, "S": 9, "L": 3}  # sizes of a second run


class Named(NamedTuple):
    """How many axes there are, and how many of them have a name."""

    named: int
    all: int

    @property
    def percent(self) -> float:
        return 100 * self.named / self.all if self.all else 100.0


class Right(NamedTuple):
    """One model that is right."""

    name: str
    library: str
    rows: int
    placed: int  # rows with a file and a line
    axes: Named  # of tensors with two or more axes
    strict: Named  # of these, the axes that are longer than 1
    steady: Named  # of the names, those that are the same at other sizes
    findings: tuple[Finding, ...]  # warnings and errors: false alarms, for the model is right
    notes: int = 0  # of no weight
    crash: str = ""


class Found(NamedTuple):
    """One wrong variant. `at` is the finding at a marked line, None where there is none."""

    variant: Variant
    at: Finding | None
    others: tuple[Finding, ...]  # of the wrong one, elsewhere
    twins: tuple[Finding, ...]  # of the right one
    crash: str = ""


def right(model: Model) -> Right:
    trace = of(model.build())
    alarms = tuple(
        f for f in grave(trace) if verdict_of(f.file, f.rule) is None
    )  # docs/in-the-wild.md
    return Right(
        model.name,
        model.library,
        rows=len(trace.ops),
        placed=sum(bool(op.file and op.line) for op in trace.ops),
        axes=named(trace.ops, least=0),
        strict=named(trace.ops, least=2),
        steady=steady(trace.ops, of(shorter(model.build())).ops),
        findings=alarms,
        notes=len(trace.findings) - len(grave(trace)),
        crash=crash(trace),
    )


def grave(trace: Trace) -> tuple[Finding, ...]:
    """Warnings and errors: a note is no alarm."""
    return tuple(f for f in trace.findings if f.severity != "note")


def of(given: Given) -> Trace:
    torch.manual_seed(0)
    with torch.no_grad():
        trace: Trace = attnlab.trace(given.module, dims=given.dims, **given.kwargs)
    return trace


def shorter(given: Given, fewer: Mapping[str, int] = FEWER) -> Given:
    """The same call with fewer entries and positions."""
    dims = {n: axes.split() for n, _, axes in (d.partition(": ") for d in given.dims.split(", "))}
    tensors = all(isinstance(v, torch.Tensor | bool) for v in given.kwargs.values())
    kwargs = dict(given.kwargs)
    for name, axes in dims.items():
        for i, axis in enumerate(axes):
            # A cache was filled by a whole batch
            length = fewer.get(axis, 0) if tensors or axis != "B" else 0
            if 0 < length < kwargs[name].shape[i]:
                kwargs[name] = kwargs[name].narrow(i, 0, length)
    return given._replace(kwargs=kwargs)


def steady(ops: tuple[Op, ...], others: tuple[Op, ...]) -> Named:
    """A name that follows from sizes alone is another one at other sizes."""
    pairs = []
    for op, other in zip(ops, others, strict=False):
        if (op.op, op.line, len(op.shape)) != (other.op, other.line, len(other.shape)):
            break  # where the model does something else at other sizes
        if len(op.shape) > 1:
            pairs += zip(op.axes, other.axes, strict=True)
    pairs = [(a, b) for a, b in pairs if not (a.isdigit() and b.isdigit())]
    return Named(sum(a == b for a, b in pairs), len(pairs))


def named(ops: tuple[Op, ...], least: int) -> Named:
    """An axis has no name where the trace can only say its size, a number of 2 or more."""
    pairs = [
        (name, size)
        for op in ops
        if len(op.shape) > 1
        for name, size in zip(op.axes, op.shape, strict=True)
        if size >= least
    ]
    bare = sum(name.isdigit() and size > 1 for name, size in pairs)
    return Named(len(pairs) - bare, len(pairs))


def wrong(variant: Variant) -> Found:
    trace = traced(variant)
    lines = (*variant.wrong, *variant.shows)
    mine = [f for f in grave(trace) if f.file == variant.file]
    # The mistake itself before the line where it shows.
    at = next((f for line in lines for f in mine if f.line == line), None)
    return Found(
        variant,
        at,
        others=tuple(f for f in grave(trace) if f is not at),
        twins=grave(traced(twin(variant))),
        crash=crash(trace),
    )


def coincidences(variant: Variant) -> list[tuple[dict[str, int], Finding]]:
    """Findings on the right twin where sizes are equal by chance; some may not fit it."""
    found = []
    for sizes in COINCIDE:
        with contextlib.suppress(RuntimeError):  # sizes that the module cannot be built with
            trace = traced(twin(variant), sizes)
            found += [(sizes, f) for f in grave(trace) if trace.crash is None]
    return found


def traced(variant: Variant, sizes: Mapping[str, int] | None = None) -> Trace:
    module, inputs, dims = build(variant, sizes)
    with torch.no_grad():
        trace: Trace = attnlab.trace(module, dims=dims, **inputs)
    return trace


def crash(trace: Trace) -> str:
    return f"{trace.crash.error}: {trace.crash.message}" if trace.crash else ""
