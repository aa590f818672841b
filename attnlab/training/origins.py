"""Where what a rule saw at the end of a step was made: labels at a loss, a graph that was cut."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from attnlab.records import Finding
from attnlab.tracer.findings.base import MIXERS
from attnlab.tracer.raw_trace import RawTrace

CUTS = {"detach", "data"}
# A model whose loss takes `labels` shifts them itself; one that takes `targets` is given the next
# ids. What does not do so is the place to change.
SHIFTS_ITSELF = re.compile(r"\blabels\b")
OF_LABELS = ("labels-not-shifted", "labels-shifted-twice")


def move_to_origins(found: Iterable[Finding], raw: RawTrace, source: str) -> Iterator[Finding]:
    """The findings of a run, each at the line that its step shows to be the cause."""
    lines = source.splitlines()
    for finding in found:
        place: tuple[str, int] | None = None
        if finding.rule in OF_LABELS and finding.line <= len(lines):
            inside = SHIFTS_ITSELF.search(_function_around(lines, finding.line)) is not None
            if inside == (finding.rule == "labels-shifted-twice"):
                place = _labels_made(raw, finding)
        elif finding.rule == "no-gradient":
            place = _graph_cut(raw)
        if place is None or place == (finding.file, finding.line):
            yield finding
            continue
        says = f"{finding.message} (seen at line {finding.line})"
        yield replace(finding, file=place[0], line=place[1], message=says)


def _function_around(lines: list[str], number: int) -> str:
    """From the `def` above a line to the line; the line alone where it is in none."""
    for first in range(number - 1, -1, -1):
        if re.match(r"\s+def ", lines[first]):
            return "\n".join(lines[first:number])
        if lines[first][:1].strip() and first < number - 1:
            break
    return lines[number - 1]


def _labels_made(raw: RawTrace, finding: Finding) -> tuple[str, int] | None:
    """The first row on the way to a loss's targets that the model's ids do not share."""
    ops = raw.ops
    at_loss = [op for op in ops if (op.file, op.line) == (finding.file, finding.line)]
    loss = next((op for op in at_loss if op.op in ("cross_entropy", "nll_loss")), None)
    if loss is None or len(loss.parents) < 2:
        return None
    ids = (p for op in ops if op.op == "embedding" for p in op.parents)
    shared = _ancestors(raw, ids)
    row, last = _made(raw, loss.parents[1]), None
    while row >= 0 and row not in shared:
        last = ops[row]
        row = _made(raw, next(iter(last.parents), -1 - len(raw.inputs)))
    return (last.file, last.line) if last is not None else None


def _graph_cut(raw: RawTrace) -> tuple[str, int] | None:
    """The one line that takes what a layer made out of the graph, on the way to the loss."""
    ops = raw.ops
    used = _ancestors(raw, raw.flow.outputs)
    cuts = {
        (ops[row].file, ops[row].line)
        for row in used
        if row >= 0
        and ops[row].op in CUTS
        and any(r >= 0 and ops[r].op in MIXERS for r in _ancestors(raw, ops[row].parents))
    }
    return cuts.pop() if len(cuts) == 1 else None


def _made(raw: RawTrace, row: int) -> int:
    """The row that made an input of the model, where the step did."""
    fed = raw.flow.fed
    return fed[-1 - row] if row < 0 and -1 - row < len(fed) else row


def _ancestors(raw: RawTrace, start: Iterable[int]) -> set[int]:
    todo, seen = [*start], set[int]()
    while todo:
        row = _made(raw, todo.pop())
        if row not in seen:
            seen.add(row)
            todo += raw.ops[row].parents if row >= 0 else ()
    return seen
