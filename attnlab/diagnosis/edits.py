"""Repairs by the text: the file with one line changed, run anew.

Where the reference computes otherwise, no value of it may fit any step. Then the lines that compute
what the reference does not have are changed as people get lines wrong and right: with what the
reference writes in such places, or by an operator of the mutation tests. A change with which the
output is right, on other inputs as well, says what is wrong, where, and what would be right.
"""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

from torch import Tensor

from attnlab.diagnosis.pairing import Pairing, equal
from attnlab.diagnosis.rewrites import rewrites
from attnlab.diagnosis.suggestions import suggestions
from attnlab.diagnosis.unused import uses_of_unused
from attnlab.mutation_testing.operators.base import (
    Edit,
    Source,
    apply_edit,
    changed_lines,
)

MOST = 2400  # changes that are tried
BATCH = 24  # that are asked for at once
SECONDS = 8.0  # of CPU for all of them
MOST_VALUES = 6_000  # of one run, above which a change costs too much
MOST_LINES = 800
ROUNDING = 1e-12  # of outputs in float64
LEAST_SHOWN = 8  # characters of an expression that is shown
# A sign or a factor may be put in, or left out, at several places, all as good.
MOVABLE = (
    *("exponent", "extra-step", "extra-term", "missing-step", "missing-term"),
    *("precedence", "scale", "sign", "transposed"),
)
NOTHING = re.compile(r" [+-] 0\b(?!\.)")  # that is added
# Runs changes of a text, each what stands in place of its lines from one to another, for some
# seconds of CPU: what each returns, and how long all took.
Lines = tuple[int, int, str]
UNCHANGED: Lines = (1, 0, "")
# Which changes are right elsewhere as well, and whether the text as it is, is wrong there.
Holds = Callable[[str, Sequence[Lines]], tuple[Sequence[bool], bool]]
Run = Callable[[str, Sequence[Lines], float], tuple[Sequence[Tensor | None], float]]


class Trials(NamedTuple):
    """Runs changes of a text: on a first draw, on a second one with its right output, and at other
    sizes; none is begun after `until`, by `time.monotonic`."""

    first: Run
    second: Run
    right: Tensor
    holds: Holds
    until: float


@dataclass(frozen=True)
class Change:
    """A change of a text, how it is called, and how far its output is from the right one."""

    kind: str
    edit: Edit
    lines: Lines
    rank: int  # how early it is tried
    error: float = 0.0

    @property
    def line(self) -> int:
        return self.lines[0]


@dataclass(frozen=True)
class Fix:
    """A change that makes the output right; `sure` where no other line does."""

    kind: str
    lines: Lines  # as they are changed
    old: str  # an expression
    new: str  # what stands in place of it
    sure: bool
    replaced: str = ""  # all that it replaces

    @property
    def line(self) -> int:
        return self.lines[0]


def find_fix(
    first: Pairing,
    text: str,
    others: Sequence[str],
    trials: Trials,
    suspects: Collection[int] = (),
) -> Fix | None:
    """The likeliest change that makes the output right in all trials.

    `others` are texts of the reference. The lines that are `suspects` are changed first."""
    right = first.theirs.result
    if right is None or len(first.mine.values) > MOST_VALUES or text.count("\n") > MOST_LINES:
        return None
    source = _parsed(text)
    if source is None:
        return None
    theirs = [parsed for other in others if (parsed := _parsed(other))]
    changes = islice(changes_of(first, source, theirs, suspects), MOST)
    hits, left, telling = list[Change](), SECONDS, False
    same, _ = trials.first(text, [UNCHANGED], SECONDS)
    if not same or (same[0] is not None and equal(same[0], right)):
        return None  # it is right as it is: what it kept of earlier calls is wrong
    while (left := min(left, trials.until - time.monotonic())) > 0 and (
        batch := list(islice(changes, BATCH))
    ):
        if hits and batch[0].rank > hits[0].rank:
            break
        results, took = trials.first(text, [change.lines for change in batch], left)
        left -= took
        found = _right_ones(batch, results, right)
        if found:
            results, _ = trials.second(text, [change.lines for change in found], SECONDS)
            found = _right_ones(found, results, trials.right)
        if found:
            held, told = trials.holds(text, [change.lines for change in found])
            telling = telling or told
            hits += [change for change, right_there in zip(found, held, strict=True) if right_there]
    if not hits:
        return None
    line = hits[0].line
    alone = telling and all(abs(hit.line - line) <= 1 for hit in hits)
    here = [hit for hit in hits if hit.line == line]
    bound = 10 * min(hit.error for hit in here) + ROUNDING  # a tiny number is nearly no number
    fixes = [
        Fix(
            hit.kind,
            hit.lines,
            *_shown(source, hit.edit),
            alone and hit.kind not in MOVABLE,
            source.text[slice(*_span(hit.edit))],
        )
        for hit in here
        if hit.error <= bound
    ]
    return min(fixes, key=lambda fix: (fix.kind == "wrong-operand", len(fix.new)))


def _right_ones(
    changes: Sequence[Change], results: Sequence[Tensor | None], right: Tensor
) -> list[Change]:
    return [
        replace(change, error=float((result - right).abs().nan_to_num(0.0).max()))
        for change, result in zip(changes, results, strict=False)
        if result is not None and result.numel() and equal(result, right)
    ]


def _parsed(text: str) -> Source | None:
    """A text to be changed; None where it is no file, as of a function inside of another one."""
    try:
        return Source(text)
    except SyntaxError:
        return None


def changes_of(
    first: Pairing, source: Source, others: Sequence[Source], suspects: Collection[int] = ()
) -> Iterator[Change]:
    """Each change of a text once: what uses what is made in vain, what the reference suggests, then
    those of the most suspicious lines first."""
    ranks = {**_ranks(first, source), **dict.fromkeys(suspects, 0)}
    found = [Change(kind, e, _lines(source, e), -1) for kind, e in uses_of_unused(source)]
    for other in others:
        for kind, edit in suggestions(source, other):
            found.append(Change(kind, edit, _lines(source, edit), 0))
    for kind, edit in rewrites(source):
        lines = _lines(source, edit)
        suspicion = min(ranks.get(n, 4) for n in range(lines[0], lines[1] + 1))
        found.append(Change(kind, edit, lines, 1 + suspicion))
    seen = set[Lines]()
    for change in sorted(found, key=lambda each: each.rank):
        if change.lines not in seen:
            seen.add(change.lines)
            yield change


def _lines(source: Source, edit: Edit) -> Lines:
    """The lines that an edit changes, and what stands in their place."""
    low, high = _span(edit)
    start = source.text.rfind("\n", 0, low) + 1
    end = source.text.find("\n", high)
    end = len(source.text) if end < 0 else end + 1
    first = source.text.count("\n", 0, start) + 1
    inside = tuple((a - start, b - start, new) for a, b, new in edit.splices)
    new = apply_edit(source.text[start:end], Edit(splices=inside))
    return first, source.text.count("\n", 0, end - 1) + 1, new


def _span(edit: Edit) -> tuple[int, int]:
    return min(start for start, _, _ in edit.splices), max(end for _, end, _ in edit.splices)


def _shown(source: Source, edit: Edit) -> tuple[str, str]:
    """The expression that an edit changes, before and after: so much of it as says something."""
    low, high = _span(edit)
    changed = apply_edit(source.text, edit)
    more = len(changed) - len(source.text)
    around = [
        (end - start, start, end)
        for node in source.nodes
        if isinstance(node, ast.expr)
        for start, end in [source.span(node)]
        if start <= low and high <= end and end - start >= LEAST_SHOWN
    ]
    for _, start, end in sorted(around):
        try:
            both = source.text[start:end], changed[start : end + more]
            old, new = (ast.unparse(ast.parse(each.strip(), mode="eval")) for each in both)
        except SyntaxError:
            continue
        if old != new:
            return old, NOTHING.sub("", new)
    _, before, after = changed_lines(source.text, changed)
    return before, after


def _culprits(first: Pairing, index: int) -> list[int]:
    """The line of a wrong step, or those that called it where another call of it is right."""
    made = first.mine.values[index]
    place = made.file, made.line, made.op
    right = any(
        (v.file, v.line, v.op) == place and v.callers != made.callers and first.matches[i]
        for i, v in enumerate(first.mine.values)
    )
    return made.callers if right else [made.line]


def _ranks(first: Pairing, source: Source) -> dict[int, int]:
    """How suspicious lines are: 0 where what is wrong comes from what is right, 1 where the output
    is made of it, 2 where it is made of what is right, 3 in the same functions and in __init__."""
    values = first.mine.values
    found = {values[i].line: 2 for i in first.mine.ancestors(first.mine.output)}
    for index in first.wrong:
        if values[index].line:
            found.update(dict.fromkeys((values[index].line, *values[index].callers), 1))
    for index in first.sources:
        # A helper is right where another call of it is.
        found.update(dict.fromkeys(_culprits(first, index), 0))
    near = set[int]()
    for function in source.of_type(ast.FunctionDef):
        lines = range(function.lineno, (function.end_lineno or function.lineno) + 1)
        if function.name == "__init__" or any(line in found for line in lines):
            near.update(lines)
    return {**dict.fromkeys(near, 3), **found}
