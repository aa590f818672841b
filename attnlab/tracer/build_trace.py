"""Build a trace from a raw one: axis names, findings, the crash explained."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from attnlab.records.trace import Crash, Finding, Trace
from attnlab.sizes import Sizes
from attnlab.tracer.axes.agree import SizedTrace, name_operands
from attnlab.tracer.findings import Rows, find
from attnlab.tracer.raw_trace import RawCrash, RawTrace

HIDDEN = {"silent-broadcast", "leftover-axis"}  # findings that equal sizes can hide


def build_trace(run: SizedTrace, distinct: SizedTrace | None) -> Trace:
    """The trace of a run; `distinct` is the same run at sizes that tell axes apart."""
    raw = run.raw
    rows = Rows(run, distinct)
    found = unique_findings((*find(rows), *raw.findings))
    if distinct is not None:
        found = (*found, *_hidden_findings(run, distinct, found))
    return Trace(
        ops=tuple(replace(op, axes=a) for op, a in zip(raw.ops, rows.axes, strict=True)),
        findings=found,
        crash=_crash(rows, raw.crash, run, distinct, found) if raw.crash is not None else None,
        notes=raw.notes,
        sizes=raw.sizes,
        backward=raw.backward,
        attention=raw.attention,
        values=raw.values,
        guards=raw.guards,
        compilation=raw.compilation,
        weights=raw.weights,
    )


def _crash(
    rows: Rows,
    crash: RawCrash,
    run: SizedTrace,
    distinct: SizedTrace | None,
    found: tuple[Finding, ...],
) -> Crash:
    from attnlab.tracer.crash.explain import explain_crash  # most runs end well

    return explain_crash(rows, crash, name_operands(run, distinct), found)


def unique_findings(found: Sequence[Finding]) -> tuple[Finding, ...]:
    """One finding per rule and line, in the order of the rows."""
    kinds: dict[tuple[str, int], Finding] = {}
    for finding in found:
        kinds.setdefault((finding.rule, finding.line), finding)
    return tuple(sorted(kinds.values(), key=lambda f: math.inf if f.index is None else f.index))


def _hidden_findings(
    run: SizedTrace, distinct: SizedTrace, found: tuple[Finding, ...]
) -> Iterator[Finding]:
    """Findings that the example's sizes hide: with B = 1 or S = H a wrong shape looks right."""
    if run.raw.crash is not None:
        return
    where = sizes_suffix(distinct.sizes)
    known = {(f.rule, f.line) for f in found}
    hidden = (f for f in find(Rows(distinct)) if f.rule in HIDDEN)
    for finding in unique_findings((*hidden, *distinct.raw.findings)):
        if (finding.rule, finding.line) not in known:
            index = _matching_row(run.raw, finding)
            yield replace(finding, message=finding.message + where, index=index)


def _matching_row(raw: RawTrace, finding: Finding) -> int | None:
    """The row of this run for a finding of another run; None where the rows differ."""
    row = finding.index
    if row is None or row >= len(raw.ops):
        return None
    return row if (raw.ops[row].op, raw.ops[row].line) == (finding.op, finding.line) else None


def sizes_suffix(sizes: Sizes) -> str:
    return f" (at {', '.join(f'{k}={v}' for k, v in sizes.items())})"
