"""Findings from the flow: what is given, held or made and reaches nothing."""

import math
import re
from collections.abc import Iterator, Sequence

from attnlab.records.trace import Finding
from attnlab.tracer.findings.base import Rows, show
from attnlab.tracer.flow import HeldTensor
from attnlab.tracer.raw_trace import finding_at

FEW = 8  # elements that may be equal by chance
MOST = 3  # names that a message lists


def odd_structure(rows: Rows) -> Iterator[Finding]:
    """What is odd about the module as it was built."""
    yield from rows.raw.flow.structure


def dropped_results(rows: Rows) -> Iterator[Finding]:
    """A statement that computes a new tensor and throws it away."""
    for row in rows.raw.flow.dropped:
        op = rows.raw.ops[row]
        yield finding_at(
            op,
            "result-dropped",
            f"{op.op} returns a new tensor {show(rows.axes[row])}, and this line throws it away: "
            "what it was called on stays as it was. Assign the result",
        )


def unread_results(rows: Rows) -> Iterator[Finding]:
    """A variable that is given a tensor and is never read."""
    for row, name in rows.raw.flow.unread:
        op = rows.raw.ops[row]
        again = op.view and op.source.startswith(f"{name} = {name}.") and "mask" not in name
        if again:  # the same elements, seen otherwise: a leftover
            continue
        yield finding_at(
            op,
            "result-unread",
            f"{name} {show(rows.axes[row])} is computed here and never read: what follows goes on "
            "with something else",
        )


def unused_weights(rows: Rows) -> Iterator[Finding]:
    """Parameters that no operation took, or that nothing of the output descends from."""
    flow = rows.raw.flow
    if not flow.whole or rows.raw.crash is not None:
        return
    alive = living_rows(rows)
    idle = [h for h in flow.held if h.kind == "parameter" and not alive.intersection(h.rows)]
    used = [h for h in flow.held if h.kind == "parameter" and h not in idle]
    if not used:
        return
    empty = _rows_before_nothing(rows)
    idle = [h for h in idle if not empty.intersection(h.rows)]
    for group in _by_module(idle, used):
        untouched = not any(held.rows for held in group)
        names = [held.name for held in group]
        listed = ", ".join(names[:MOST]) + (f" and {len(names) - MOST} more" * (len(names) > MOST))
        many = len(names) > 1
        what = (
            f"{'take' if many else 'takes'} part in no operation"
            if untouched
            else f"{'are' if many else 'is'} used, but nothing of the output descends from "
            f"{'them' if many else 'it'}"
        )
        first = next((row for held in group for row in held.rows), None)
        last = None if first is None else _last_made_of(rows, first)
        file, line, op = _place(rows, group, last)
        if untouched and not line:  # other branches, or other inputs, may be what it is for
            continue
        yield Finding(
            rule="unused-parameter",
            file=file,
            line=line,
            op=op,
            severity="note" if flow.partial or _only_last(group, used) else "warning",
            message=f"{listed} {what}: no gradient will ever reach {'them' if many else 'it'}",
            index=last,
        )


def _only_last(group: Sequence[HeldTensor], used: Sequence[HeldTensor]) -> bool:
    """Whether the same parameters of all layers before are used: the last one of a stack makes
    something for a next one, and there is none."""
    return any(_is_last(held.name, [u.name for u in used]) for held in group)


def _is_last(name: str, used: Sequence[str]) -> bool:
    found = re.search(r"[^.]*\d+[^.]*(?=\.)", name)
    if found is None:
        return False
    same = rf"{re.escape(name[: found.start()])}([^.]+){re.escape(name[found.end() :])}"
    layers = [m[1] for other in used if (m := re.fullmatch(same, other))]
    numbers = [int(n[0]) for layer in layers if (n := re.search(r"\d+", layer))]
    return bool(numbers) and max(numbers) < int(re.sub(r"\D", "", found[0]))


def _last_made_of(rows: Rows, first: int) -> int:
    """The last row on the first way on from a row: what it made ends there."""
    for op in rows.raw.ops[first + 1 :]:
        if first in op.parents:
            first = op.index
    return first


def _rows_before_nothing(rows: Rows) -> set[int]:
    """The rows of which nothing is made: a slice for windows that this input does not fill."""
    found: set[int] = set()
    for op in reversed(rows.raw.ops):
        if 0 in op.shape or op.index in found:
            found |= {op.index, *op.parents}
    return found


def _place(rows: Rows, group: Sequence[HeldTensor], first: int | None) -> tuple[str, int, str]:
    """File, line and operation of the first use; of the attribute, where no method names it."""
    if first is not None:
        op = rows.raw.ops[first]
        return op.file, op.line, op.op
    for path, file, line in rows.raw.flow.unnamed:
        if all(held.name == path or held.name.startswith(f"{path}.") for held in group):
            return file, line, ""
    return "", 0, ""


def living_rows(rows: Rows, read: tuple[int, ...] = ()) -> set[int]:
    """Rows (and inputs, -1 - i) that the output or one of `read` descends from, or that write."""
    ops = rows.raw.ops
    todo = [*rows.raw.flow.outputs, *read, *(op.index for op in ops if _writes(op.op))]
    alive: set[int] = set()
    while todo:
        row = todo.pop()
        if row not in alive:
            alive.add(row)
            todo += ops[row].parents if row >= 0 else ()
    return alive


def _writes(op: str) -> bool:
    return op.endswith("_") or op in ("setitem", "iadd", "isub", "imul", "itruediv", "iand", "ior")


def _by_module(
    idle: Sequence[HeldTensor], used: Sequence[HeldTensor]
) -> Iterator[list[HeldTensor]]:
    """Idle parameters together that belong to one module none of whose parameters is used."""
    groups: dict[str, list[HeldTensor]] = {}
    for held in idle:
        path = held.name.rpartition(".")[0]
        while path.rpartition(".")[0] and not any(
            other.name.startswith(f"{path.rpartition('.')[0]}.") for other in used
        ):
            path = path.rpartition(".")[0]
        key = path if path and not any(u.name.startswith(f"{path}.") for u in used) else held.name
        groups.setdefault(key, []).append(held)
    yield from groups.values()


def unused_inputs(rows: Rows) -> Iterator[Finding]:
    """An input that operations take and that nothing of the output descends from."""
    flow, ops = rows.raw.flow, rows.raw.ops
    if not flow.whole or rows.raw.crash is not None:
        return
    alive = living_rows(rows, flow.read)
    for number, name in enumerate(rows.raw.input_names):
        takers = [op for op in ops if -1 - number in op.parents]
        if -1 - number in alive or not takers:
            continue
        last = takers[-1]
        yield finding_at(
            last,
            "unused-input",
            f"{name} {show(rows.inputs[number])} goes into {last.op} here, and nothing of the "
            "output descends from it: the result would be the same without it",
            "note" if flow.partial and rows.raw.input_kinds[number] != "bool" else "warning",
        )


def constant_outputs(rows: Rows) -> Iterator[Finding]:
    """An output that is the same number everywhere."""
    for row in rows.raw.flow.outputs:
        op = rows.raw.ops[row] if row >= 0 else None
        if op is None or op.min is None or op.min != op.max or math.prod(op.shape) <= FEW:
            continue
        if op.dtype.startswith(("float", "bfloat")) and op.index in rows.data:
            yield finding_at(
                op,
                "output-constant",
                f"the output {show(rows.axes[row])} is {op.min:.4g} everywhere, whatever the input",
                "warning" if op.min else "note",
            )
