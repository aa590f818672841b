"""Which rows of a trace are shown, and which stand for others: filters, calls, layers alike.

Nothing is lost: what a line stands for is said on it, and `--json` holds every row.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from itertools import groupby
from typing import TypeVar

from attnlab.records import Op, Trace, record
from attnlab.render.formats import has_nan_or_inf

N = TypeVar("N", int, float)
LEAST_SAVED = 3  # lines that showing layers once must save
LEAST_ROUNDS_SAVED = 12  # lines that showing the rounds of a loop once must save
TRIED_LENGTHS = 3  # of a round


@record
class View:
    """What of a trace is looked at."""

    module: str = ""  # a pattern of submodules: "h.*.attn"; what is below them belongs to them
    op: str = ""  # a pattern of operations: "*soft*"
    only_findings: bool = False
    depth: int | None = None  # levels of submodules whose rows are shown one by one
    fold: bool = True  # layers alike are shown once
    inputs: tuple[tuple[str, ...], ...] = ()  # the axes of the inputs
    file: str = ""  # that is named above the table: rows that are all of it need no name


@record
class Step:
    """One line: an operation, or the whole call of a submodule."""

    op: Op  # of a call, its last
    call: str = ""  # the submodule
    rows: int = 1  # that the line stands for
    took: tuple[str, ...] = ()  # the axes of what the call was given, where they are known
    rule: str = ""  # of the finding that stands there
    flagged: bool = False  # it is more than a note
    seconds: float | None = None  # of all its rows together
    bytes: int | None = None


@record
class Repeat:
    """Lines that layers have in common, or the rounds of a loop, as the first of them has them."""

    first: str  # layer; "" for a loop
    last: str
    times: int
    steps: tuple[Shown, ...]
    lines: tuple[int, int] = (0, 0)  # of the loop
    sizes_differ: bool = False  # of what the rounds make of data


Shown = Step | Repeat


def arrange_rows(trace: Trace, view: View) -> tuple[Shown, ...]:
    """The lines of the table, in the order of the run."""
    rules = {f.index: f.rule for f in trace.findings if f.index is not None}
    wanted = [op for op in trace.ops if not view.only_findings or op.index in rules]
    grave = {finding.index for finding in trace.grave}
    steps = [
        Step(op=op, rule=rules.get(op.index, ""), flagged=op.index in grave)
        for op in wanted
        if _matches(op, view)
    ]
    if view.depth is not None:
        given = {-1 - i: axes for i, axes in enumerate(view.inputs)}
        steps = _fold_calls(steps, view.depth, {**given, **{op.index: op.axes for op in trace.ops}})
    return tuple(_fold_repeats(steps)) if view.fold else tuple(steps)


def _matches(op: Op, view: View) -> bool:
    named = not view.op or fnmatchcase(op.op, view.op)
    return named and (not view.module or inside(op.module, view.module))


def inside(path: str, pattern: str) -> bool:
    """Whether a submodule, or one that it is a part of, is meant by `pattern`."""
    parts = path.split(".")
    return any(fnmatchcase(".".join(parts[:n]), pattern) for n in range(1, len(parts) + 1))


# ---------------------------------------------------------------- calls


def levels(path: str) -> list[str]:
    """`h.0.attn` as `h.0` and `attn`: a number is no level of its own."""
    found: list[str] = []
    for part in path.split(".") if path else ():
        if part.isdigit() and found:
            found[-1] += f".{part}"
        else:
            found.append(part)
    return found


def _fold_calls(steps: Sequence[Step], depth: int, axes: dict[int, tuple[str, ...]]) -> list[Step]:
    """The steps, those of submodules deeper than `depth` as one for each call."""
    calls = groupby(steps, lambda step: _submodule_at(step.op.module, depth))
    return [
        step
        for name, group in calls
        for step in ([_call_step(name, list(group), axes)] if name else group)
    ]


def _submodule_at(path: str, depth: int) -> str:
    """The submodule at whose call the rows of `path` are hidden; "" where they are shown."""
    parts = levels(path)
    return ".".join(parts[: depth + 1]) if len(parts) > depth else ""


def _call_step(name: str, steps: Sequence[Step], axes: dict[int, tuple[str, ...]]) -> Step:
    own = {step.op.index for step in steps}
    given = (p for step in steps for p in step.op.parents if p not in own)
    return Step(
        op=steps[-1].op,
        call=name,
        rows=len(steps),
        took=axes.get(next(given, steps[0].op.index), ()),
        rule=next((step.rule for step in steps if step.rule), ""),
        flagged=any(step.flagged for step in steps),
        seconds=_total([step.op.seconds for step in steps]),
        bytes=_total([step.op.bytes for step in steps]),
    )


def _total(parts: Sequence[N | None]) -> N | None:
    """Of what was measured; None where nothing was."""
    known = [part for part in parts if part is not None]
    return sum(known[1:], known[0]) if known else None


# ---------------------------------------------------------------- layers alike


def _fold_repeats(steps: Sequence[Step]) -> Iterable[Shown]:
    """The steps, with a `Repeat` wherever numbered layers do the same one after the other."""
    at = 0
    rounds = _Rounds(steps)
    while at < len(steps):
        found = _repeat(steps, at) or rounds.begun_at(at)
        if found:
            repeat, at = found
            yield repeat
        else:
            yield steps[at]
            at += 1


def _repeat(steps: Sequence[Step], at: int) -> tuple[Repeat, int] | None:
    """The layers alike that begin at `at`, and where they end."""
    for stem, number in _numbered(steps[at].op.module):
        layer = f"{stem}.{number}"
        if at and _within(steps[at - 1].op.module, layer):
            continue  # its first row has been looked at
        starts = _starts(steps, at, stem)
        if len(starts) < 2:
            continue
        names, places = list(starts), list(starts.values())
        size = places[1] - at
        model = steps[at : at + size]
        alike = 1
        while alike < len(names) and _alike(
            (model, layer), (steps[places[alike] : places[alike] + size], names[alike])
        ):
            alike += 1
        if (alike - 1) * size >= LEAST_SAVED:
            once = tuple(_fold_repeats(steps[at : at + size]))
            repeat = Repeat(first=layer, last=names[alike - 1], times=alike, steps=once)
            return repeat, places[alike - 1] + size
    return None


class _Rounds:
    """Loops in Python: the same lines do the same many times, one round after the other."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = steps
        self.marks = [_fingerprint(step, "", made=not step.op.parents) for step in steps]
        self.places: dict[object, list[int]] = {}
        for place, mark in enumerate(self.marks):
            self.places.setdefault(mark, []).append(place)

    def begun_at(self, at: int) -> tuple[Repeat, int] | None:
        """The rounds that begin at `at`, and where they end."""
        places = self.places[self.marks[at]]
        following = bisect_right(places, at)
        for second in places[following : following + TRIED_LENGTHS]:
            size = second - at
            end = second
            while end + size <= len(self.steps) and self._same_round(at, end, size):
                end += size
            if end - second >= LEAST_ROUNDS_SAVED:
                once = tuple(self.steps[at:second])
                numbers = [step.op.line for step in once]
                lines = (min(numbers), max(numbers))
                rounds = self.steps[at:end]
                repeat = Repeat(
                    first="",
                    last="",
                    times=len(rounds) // size,
                    steps=once,
                    lines=lines,
                    sizes_differ=any(
                        step.op.shape != once[n % size].op.shape for n, step in enumerate(rounds)
                    ),
                )
                return repeat, end
        return None

    def _same_round(self, at: int, other: int, size: int) -> bool:
        alike = self.marks[at : at + size] == self.marks[other : other + size]
        pairs = zip(self.steps[at : at + size], self.steps[other : other + size], strict=False)
        return alike and all(theirs.rule in ("", ours.rule) for ours, theirs in pairs)


def _numbered(path: str) -> Iterable[tuple[str, str]]:
    """`h.0.parts.1` as (h, 0) and (h.0.parts, 1), the outermost first."""
    parts = path.split(".")
    return [(".".join(parts[:n]), part) for n, part in enumerate(parts) if n and part.isdigit()]


def _starts(steps: Sequence[Step], at: int, stem: str) -> dict[str, int]:
    """The layers of `stem` from `at` on, each with its first step; one that comes back ends it."""
    found: dict[str, int] = {}
    last = ""
    for place in range(at, len(steps)):
        path = steps[place].op.module
        if not path.startswith(f"{stem}."):
            continue
        layer = f"{stem}.{path[len(stem) + 1 :].partition('.')[0]}"
        if layer != last and layer in found:
            break
        found.setdefault(layer, place)
        last = layer
    return found


def _within(path: str, layer: str) -> bool:
    return path == layer or path.startswith(f"{layer}.")


def _alike(model: tuple[Sequence[Step], str], other: tuple[Sequence[Step], str]) -> bool:
    """The same steps; what is found in a layer that is not shown must be found in the model too.

    A finding that all layers share may be told of the first alone.
    """
    ours, theirs = (
        [_fingerprint(step, layer) for step in steps] for steps, layer in (model, other)
    )
    pairs = zip(model[0], other[0], strict=False)
    return ours == theirs and all(o.rule in ("", m.rule) for m, o in pairs)


def _fingerprint(step: Step, layer: str, made: bool = False) -> object:
    """What steps that are alike share; not the sizes of a tensor that is `made` of data."""
    op = step.op
    path = step.call or op.module
    place = (path[len(layer) :], "") if _within(path, layer) else ("", path)
    # Not the axes: the first layer gets its width from the embedding, the next from the first.
    shape = len(op.shape) if made else op.shape
    what = (op.op, op.file, op.line, shape, op.dtype, has_nan_or_inf(op))
    return (place, what, step.rows)
