"""Where does mine part from the one that works? Capture both, pair, repair, explain.

capture -> Pairing -> Search -> Diagnosis
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from torch import Tensor

from attnlab.diagnosis.edits import MOVABLE, Fix, Holds, Lines, Run, Trials, find_fix
from attnlab.diagnosis.explain import LIKELY, SURE, describe, line_text, step_name
from attnlab.diagnosis.families import same_family
from attnlab.diagnosis.guesses import guess
from attnlab.diagnosis.lines import is_in_function, names_number, takes_argument
from attnlab.diagnosis.loaded import makes_weights, misloaded
from attnlab.diagnosis.pairing import Pairing, Side, equal_results
from attnlab.diagnosis.place import Sources, is_in_difference
from attnlab.diagnosis.pool import VAGUE
from attnlab.diagnosis.repair import Patches, Repair, Repaired, Search
from attnlab.diagnosis.rewrites import fault_of
from attnlab.records.diagnosis import Diagnosis, DiffReport, PairedStep

UNSURE = ("other", "other-step", "missing-step")  # with these a line is a guess
OPERAND = "wrong-operand"
SURELY = 2  # faults; of more, of which some say nothing, one may only make up for another
MOVES = ("cat", "masked_fill", "permute", "reshape", "stack", "transpose", "view", "where")
MEASURED = ("scale", "sign", "offset")  # that the numbers alone tell
STEPS = 400  # pairs that a report lists


@dataclass(frozen=True)
class Draw:
    """One draw of inputs: how to run mine on them, and what theirs makes of them."""

    mine: Callable[[Patches], Side]
    theirs: Side
    edited: Run | None = None  # what changed texts of mine return
    with_change: Callable[[str, Lines], Side] | None = None
    holds: Holds | None = None  # whether changes are right at other sizes
    until: float = inf  # by `time.monotonic`: what is found by then is told


def diagnose(draw: Draw, again: Draw, sizes: Mapping[str, int], sources: Sources) -> DiffReport:
    """What is wrong with mine; repairs are confirmed on other inputs, `again`."""
    start = draw.mine({})
    if start.result is None or draw.theirs.result is None:
        who = "yours" if start.result is None else "the reference"
        return DiffReport(outcome="cannot-compare", message=f"{who} returns no tensor")
    returned = () if start.alone and draw.theirs.alone else (start.returned, draw.theirs.returned)
    error = max_error(start, draw.theirs)
    if equal_results(start, draw.theirs):
        return DiffReport(
            outcome="same",
            max_error=error or 0.0,
            steps=steps(Pairing(start, draw.theirs)),
            returned=returned,
        )
    told = other_shape(start.result, draw.theirs.result)
    found, named = _searched(draw, again, start, sizes, sources)
    return DiffReport(
        outcome="different",
        max_error=error or 0.0,
        message="; ".join(filter(None, (told, _others(found.first, named)))),
        steps=steps(found.first),
        diagnosis=named,
        runs=found.runs,
        returned=returned,
    )


def _searched(
    draw: Draw, again: Draw, start: Side, sizes: Mapping[str, int], sources: Sources
) -> tuple[Repaired, tuple[Diagnosis, ...]]:
    """What is wrong, by the first way that tells it for certain: values of the reference put in
    place of one fault, changes of the text, values put in place of several, changed values."""
    found = Search(draw.mine, draw.theirs, draw.until).find(start)
    named = _named(found, again, sizes, sources)
    loaded = tuple(misloaded(found.first, sizes, sources))
    elsewhere = any(_is_elsewhere(repair, sources) for repair in found.repairs)
    told = _tells(named) and (named[0].confirmed or not elsewhere)
    fix = None if told else _fixed(found.first, draw, again, sources, loaded or named)
    fix = fix and _with_relation(fix, named)
    if fix and loaded:
        on_line = [i for i, v in enumerate(start.values) if v.call >= 0 and v.line == fix.line]
        fix = fix if on_line and makes_weights(start, on_line) else None
    if fix and (fix.confirmed or loaded):
        return found, (fix,)
    late = time.monotonic() > draw.until
    if not fix and not late and (not found.whole or found.vague):
        bold = Search(draw.mine, draw.theirs, draw.until, bold=True).find(start)
        runs = found.runs + bold.runs
        better = bold.whole and (not found.whole or bold.vague < found.vague)
        found = replace(bold if better else found, runs=runs)
        named = _named(found, again, sizes, sources)
    vague = found.vague or any(d.relation in VAGUE for d in named)
    if loaded and (not named or vague or not makes_weights(start, [r.mine for r in found.repairs])):
        return found, loaded
    if not late and (not named or (vague and not any(d.confirmed for d in named))):
        second = Pairing(again.mine({}), again.theirs)
        guessed = guess(draw.mine, found.first, sizes, (again.mine, second))
        if guessed:
            found = replace(guessed, runs=found.runs + guessed.runs)
            named = _named(found, again, sizes, sources)
    if fix is None:
        return found, named
    same = any((d.file, d.line, d.relation) == (fix.file, fix.line, fix.relation) for d in named)
    sure = [d for d in named if d.confirmed]
    moved = fix.relation in MOVABLE and fix.relation not in UNSURE
    said = any(d.confirmed or (moved and d.relation == fix.relation) for d in named)
    if (same and not sure) or not said or len(named) > 1:
        return found, (fix,)  # one change of the text is enough
    return found, named


def _tells(named: Sequence[Diagnosis]) -> bool:
    """Whether it is told which one line is wrong, and how."""
    sure = all(d.confirmed or (d.their_line and d.relation.startswith(MEASURED)) for d in named)
    return len(named) == 1 and sure and not any(d.relation in VAGUE for d in named)


def _is_elsewhere(repair: Repair, sources: Sources) -> bool:
    """Whether a step takes only what its function is given, so that a line which calls that may be
    to blame; or only moves numbers, which then are wrong before it."""
    made = repair.before.values[repair.mine]
    text = sources.mine.get(made.file, "")
    given = bool(made.callers) and not made.inputs and takes_argument(text, made.line)
    return given or made.op in MOVES


def _named(
    found: Repaired, again: Draw, sizes: Mapping[str, int], sources: Sources
) -> tuple[Diagnosis, ...]:
    """What the repairs say, in the order of the file, each place and relation once."""
    if not found.whole:
        return ()
    sure = _is_confirmed(found, again)
    own = any(r.theirs < 0 and not r.told for r in found.repairs)
    if own and not sure and not equal_results(again.mine({}), again.theirs):
        return ()  # one step too many here, but not with other inputs
    told = (describe(repair, sizes, sources, sure) for repair in found.repairs)
    first: dict[tuple[str, int, str], Diagnosis] = {}
    for each in (_upstream(d, found.first, sources) for d in told):
        first.setdefault((each.file, each.line, each.relation), each)
    told_all = tuple(first.values())
    if len(told_all) > SURELY and any(d.relation in VAGUE for d in told_all):
        return tuple(replace(d, confirmed=False, confidence=LIKELY) for d in told_all)
    return told_all


def _fixed(
    first: Pairing, draw: Draw, again: Draw, sources: Sources, named: Sequence[Diagnosis]
) -> Diagnosis | None:
    """What a change of the text shows."""
    files = {v.file for v in first.mine.values if v.file in sources.mine}
    right = again.theirs.result
    if not (draw.edited and again.edited and draw.holds and right is not None and len(files) == 1):
        return None
    file = files.pop()
    text, theirs = sources.mine[file], list(dict.fromkeys(sources.theirs.values()))
    trials = Trials(draw.edited, again.edited, right, draw.holds, draw.until)
    suspects = {line for d in named if d.file == file for line in (d.line, d.end_line)}
    fix = find_fix(first, text, theirs, trials, suspects)
    if fix is None:
        return None
    sure = fix.sure and not equal_results(again.mine({}), again.theirs)
    # One number is soon another one by accident, as where all sizes but one stay.
    sure = sure and not (fix.kind == OPERAND and names_number(text, fix.line, fix.replaced))
    sure = sure and _is_shown(fix, first, draw, text)
    return Diagnosis(
        file=file,
        line=fix.line,
        end_line=fix.line,
        source=line_text(sources.mine, file, fix.line),
        relation=fix.kind,
        message=f"`{fix.old}`: {fault_of(fix.kind)}",
        confidence=SURE if sure else LIKELY,
        confirmed=sure,
        fix=fix.new,
    )


def _with_relation(fix: Diagnosis, named: Sequence[Diagnosis]) -> Diagnosis:
    """A change with what the values say of its line, where they say it."""
    for d in named:
        told = d.relation not in (*VAGUE, *UNSURE, OPERAND)
        if told and (d.file, d.line) == (fix.file, fix.line):
            return replace(d, confirmed=fix.confirmed, confidence=fix.confidence, fix=fix.fix)
    return fix


def _is_shown(fix: Fix, first: Pairing, draw: Draw, text: str) -> bool:
    """Whether the changed line then computes what the reference has, and mine had nowhere: else it
    may only make up for what is wrong elsewhere, or go round it."""
    if draw.with_change is None:
        return False
    after = Pairing(draw.with_change(text, fix.lines), first.theirs)
    lines = ((i, (v.line, *v.callers)) for i, v in enumerate(after.mine.values) if v.call >= 0)
    made = (i for i, called in lines if fix.line in called)
    return any(after.found[i] and after.is_new(i, first) for i in made if i != after.mine.output)


def _others(pairing: Pairing, named: Sequence[Diagnosis]) -> str:
    """The lines that do what the reference does to the same right values, with another result, but
    are not named: what is repaired after them hides them."""
    steps = (i for i in pairing.sources if _has_counterpart(pairing, i))
    lines = {pairing.mine.values[i].line for i in steps}
    left = sorted(n for n in lines if not any(d.line <= n <= d.end_line for d in named))
    if not named or not left:
        return ""
    noun, verb = ("lines", "differ") if len(left) > 1 else ("line", "differs")
    said = " and ".join(filter(None, (", ".join(map(str, left[:-1])), str(left[-1]))))
    return f"{noun} {said} {verb} from the reference too, with the right inputs"


def _has_counterpart(pairing: Pairing, index: int) -> bool:
    made, taken = pairing.mine.values[index], pairing.input_classes(index)
    others = ((i, pairing.theirs.values[i]) for i in pairing.unclaimed)
    return any(
        same_family(made.op, v.op)
        and v.numbers.shape == made.numbers.shape
        and pairing.their_input_classes(i) == taken
        for i, v in others
    )


def other_shape(mine: Tensor, theirs: Tensor) -> str:
    """How the shapes differ; "" where they do not."""
    if mine.shape == theirs.shape:
        return ""
    return f"the output has shape {tuple(mine.shape)}, the reference's {tuple(theirs.shape)}"


def _upstream(named: Diagnosis, pairing: Pairing, sources: Sources) -> Diagnosis:
    """Where nobody can say how a line is wrong, the first one above it that takes what is right and
    gives what the reference does not have."""
    if named.relation not in UNSURE or is_in_difference(sources, named.file, named.line):
        return named
    values = (pairing.mine.values[i] for i in pairing.sources)
    text = sources.mine.get(named.file, "")
    lines = (n for v in values if v.file == named.file for n in (v.line, *v.callers))
    above = (n for n in lines if n < named.line and is_in_function(text, named.line, n))
    line = next(above, 0)
    if not line:
        return named
    says = f"the reference has nothing of what is computed from here to line {named.line}"
    return replace(
        named,
        line=line,
        end_line=named.line,
        source=line_text(sources.mine, named.file, line),
        relation="other",
        message=says,
    )


def max_error(mine: Side, theirs: Side) -> float | None:
    """The largest difference of the outputs; None where they cannot be compared."""
    a, b = mine.result, theirs.result
    if a is None or b is None or a.shape != b.shape:
        return None
    gap = (a.double() - b.double()).abs()
    return float(gap.nan_to_num(float("inf")).max()) if gap.numel() else 0.0


def _is_confirmed(found: Repaired, again: Draw) -> bool:
    """Whether the same repairs make another output right, which is wrong without them."""
    start = again.mine({})
    if equal_results(start, again.theirs):
        return False
    search = Search(again.mine, again.theirs)
    patches: dict[tuple[int, int], Tensor] = {}
    side = start
    for repair in found.all:
        if repair.theirs < 0 and patches:  # it gets a value of mine, as repaired so far
            side = again.mine(patches)
        value = search.same_value(repair, side)
        if value is None:
            return False
        patches.update(value)
    return equal_results(again.mine(patches), again.theirs)


def steps(pairing: Pairing) -> tuple[PairedStep, ...]:
    """The steps of mine with those of theirs, then those that only theirs has."""
    mine, theirs = pairing.mine, pairing.theirs
    rows = []
    for index, value in enumerate(mine.values[:STEPS]):
        if value.call < 0 or not value.line:
            continue
        found = pairing.matches[index]
        other = theirs.values[found[0]] if found else None
        rows.append(
            PairedStep(
                mine=step_name(mine, index),
                line=value.line,
                shape=tuple(value.numbers.shape),
                theirs=step_name(theirs, found[0]) if found else "",
                their_line=other.line if other else 0,
                same=bool(found) or index not in pairing.wrong,
            )
        )
    rows += [
        PairedStep(
            theirs=step_name(theirs, i),
            their_line=theirs.values[i].line,
            shape=tuple(theirs.values[i].numbers.shape),
            same=pairing.is_right,
        )
        for i in pairing.unclaimed[:STEPS]
        if i not in theirs.made_of
    ]
    return tuple(rows)


def with_files(report: DiffReport, names: Mapping[str, str]) -> DiffReport:
    """The report with files under the names that messages show."""
    return replace(
        report,
        diagnosis=tuple(
            replace(
                d, file=names.get(d.file, d.file), their_file=names.get(d.their_file, d.their_file)
            )
            for d in report.diagnosis
        ),
    )
