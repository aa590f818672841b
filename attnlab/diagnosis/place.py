"""Which line of mine a finding is about."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from attnlab.candidate.value_recorder import Value
from attnlab.diagnosis.lines import (
    definition_line,
    is_in_function,
    line_after,
    nearest_difference,
    takes_argument,
)
from attnlab.diagnosis.pairing import Pairing
from attnlab.diagnosis.relations import Relation
from attnlab.diagnosis.repair import Repair

OF_NUMBERS = (
    "scale",
    "sign",
    "offset",
    "base",
    "other",
    "arguments",
    "wrong-axis",
)  # that a line takes
LARGEST = 1e9  # of a factor that is taken for one; what masks is larger
OPERANDS = ("wrong-operand", "missing-term", "extra-term", "missing-step", "other")


@dataclass(frozen=True)
class Sources:
    """The texts of the two sides by file, as messages show them."""

    mine: Mapping[str, str]
    theirs: Mapping[str, str]


@dataclass(frozen=True)
class Finding:
    """What is wrong, at which value of mine, beside which of theirs."""

    relation: Relation
    at: int  # the value of mine whose line is named
    until: int
    beside: int  # of theirs; -1 for none


def lines_to_name(repair: Repair, found: Finding, sources: Sources) -> tuple[int, int]:
    """Where the numbers say that it is wrong, and the line to name: another one where both files
    have that line and few others differ."""
    line = _line_to_name(repair, found, sources)
    line = _calling_line(repair, found, sources) or line
    return line, _line_that_differs(sources, repair.before.values[found.at].file, line)


def _line_to_name(repair: Repair, found: Finding, sources: Sources) -> int:
    """Where the value is made, where its number is defined, or where a step is missing."""
    mine, theirs = repair.before, repair.pairing.theirs
    at = mine.values[found.at]
    text = sources.mine.get(at.file, "")
    if found.relation.kind in OF_NUMBERS and found.at in (repair.mine, *repair.region):
        other = theirs.values[found.beside] if found.beside >= 0 else None
        if other is None or other.scalars != at.scalars or at.op != other.op:
            right = other is not None and other.scalars == at.scalars
            on_line = [v for v in mine.values if (v.file, v.line) == (at.file, at.line)]
            right = right or any(_is_other_way(repair, value) for value in on_line)
            where = None if right else definition_line(text, at.line)
            return where or at.line
    if found.at != found.until:
        busy = [value.line for value in mine.values if value.file == at.file]
        return line_after(text, at.line, busy)
    return at.line


def _is_other_way(repair: Repair, at: Value) -> bool:
    """Whether a step divides by the right factor, or multiplies by its inverse: the result is off
    by its square."""
    try:
        factor = float(at.scalars)
    except ValueError:
        return False
    made, right = repair.before.values[repair.mine].numbers.double(), repair.value.double()
    if made.shape != right.shape or not 0 < abs(factor) < LARGEST:
        return False
    off = (made / right).abs()
    off = off[off.isfinite() & (off > 0)]
    ways = (abs(factor) ** 2, abs(factor) ** -2)
    return bool(len(off)) and any(math.isclose(float(off[0]), way, rel_tol=1e-6) for way in ways)


def _calling_line(repair: Repair, found: Finding, sources: Sources) -> int:
    """The line that calls the function of the step, where that is what is wrong: where another
    call of it is right, or where an argument of it is the wrong operand; else 0."""
    pairing, mine = repair.pairing, repair.before
    made = mine.values[found.at]
    text = sources.mine.get(made.file, "")
    if not made.callers or made.callers != mine.values[found.until].callers:
        return 0
    calls: dict[tuple[int, ...], list[int]] = {}
    for i, v in enumerate(mine.values):
        if (v.file, v.line, v.op) == (made.file, made.line, made.op):
            calls.setdefault(tuple(v.callers), []).append(i)
    which = calls.pop(tuple(made.callers)).index(found.at)  # a line may add twice
    others = [same[which] for same in calls.values() if which < len(same)]
    if any(_is_right_there(pairing, i, left=pairing.known(found.at)) for i in others):
        return made.callers[0]
    wanted = pairing.their_input_classes(found.beside) if found.beside >= 0 else set()
    if found.relation.kind == "missing-term" and found.at == repair.mine:
        lost = wanted - {pairing.class_of(found.at)}
        lines = [v.line for i, v in enumerate(mine.values) if pairing.class_of(i) in lost]
        if lines and not any(is_in_function(text, made.line, line) for line in lines):
            return made.callers[0]  # which has what is to be added
    strange = [i for i in made.inputs if pairing.class_of(i) not in wanted]
    inside = (is_in_function(text, made.line, mine.values[i].line) for i in strange)
    taken = found.relation.kind in OPERANDS and strange and not any(inside)
    return made.callers[0] if taken and takes_argument(text, made.line) else 0


def _is_right_there(pairing: Pairing, index: int, left: bool) -> bool:
    """Whether another call of a function gives what is right; where the step is `left` as it is
    though the reference does more, whether what takes its result is right as well."""
    takers = (i for i, v in enumerate(pairing.mine.values) if index in v.inputs)
    lacks = left and any(i in pairing.wrong for i in takers)
    return index not in pairing.wrong and pairing.known(index) and not lacks


def _line_that_differs(sources: Sources, file: str, line: int) -> int:
    """The line itself, unless both files have it and few others differ."""
    text = sources.mine.get(file, "")
    for theirs in set(sources.theirs.values()):
        return nearest_difference(text, theirs, line) or line
    return line


def is_in_difference(sources: Sources, file: str, line: int) -> bool:
    """Whether the two texts are the same but for a few lines, and this is one of them."""
    text = sources.mine.get(file, "")
    return any(nearest_difference(text, theirs, line) == line for theirs in sources.theirs.values())
