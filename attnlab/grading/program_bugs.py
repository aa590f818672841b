"""Tell which bugs of a round are gone: by what was written at the place of each, put into the right
program alone; where that does not tell, by the one choice of bugs with which the right program does
what the candidate does (subsets)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from itertools import chain, combinations

from attnlab.candidate.host import Died, Raised
from attnlab.catalogue.places import Change, Stray, change_alone, stray_changes
from attnlab.catalogue.programs import compose, count_changed_lines
from attnlab.grading.observations import Observed, behaves_alike, observe, observe_part
from attnlab.grading.program import ProgramGrader, Side, cheapest_first
from attnlab.grading.program_sources import syntax_trees
from attnlab.records.program import BugResult, Files, Program

MOST_SUBSETS = 32
MOST_STRAYS = 8  # runs of lines at no bug that are tried as the fix of one


def tell_bugs(grader: ProgramGrader) -> tuple[BugResult, ...]:
    """Which bugs of the round are gone, by what the program does."""
    changes = {bug: change for bug in grader.bugs if (change := _changed_at(grader, bug))}
    gone = [bug for bug, change in changes.items() if _is_right(grader, change.files, bug)]
    told = {bug: bug in gone or _is_gone(grader, bug, gone) for bug in grader.bugs}
    if None in told.values():
        told = _tell_by_subsets(grader, told, untouched=set(grader.bugs) - set(changes))
    return tuple(BugResult(id=b, fixed=fixed, changed=b in changes) for b, fixed in told.items())


def _changed_at(grader: ProgramGrader, bug: str, strays: Collection[Stray] = ()) -> Change | None:
    return change_alone(grader.program, grader.job.bugs, grader.job.files, bug, strays)


def _is_gone(grader: ProgramGrader, bug: str, gone: Sequence[str]) -> bool | None:
    """Whether the right program stays right with what was written at the place of a bug that is not
    right by itself, and with all that was written at no bug, or one run of it; None where that may
    be what is wrong with it."""
    here = _changed_at(grader, bug)
    runs = stray_changes(grader.program, grader.job.bugs, grader.job.files, bug, gone)
    tries = [list(chain(*runs)), *runs] if len(runs) > 1 else runs
    for strays in tries[:MOST_STRAYS]:
        changed = _changed_at(grader, bug, strays)
        if changed and _is_right(grader, changed.files, bug):
            return True
    return None if runs or (here and here.shared) else False


def _is_right(grader: ProgramGrader, files: Files, bug: str) -> bool:
    """Whether these files do what the right program does, in all that shows the bug. Told at once
    where they are its own code, or were looked at in an earlier grade."""
    codes = syntax_trees(files)
    decoys = [b for b in grader.job.bugs if b not in grader.bugs]
    if codes and codes == syntax_trees(compose(grader.program, decoys)):
        return True
    with suppress(Died):  # it may have been slow today
        what = bug, *files.items()
        return grader.once(what, lambda: _behaves_rightly(grader.with_files(files), bug))
    return False


def _behaves_rightly(grader: ProgramGrader, bug: str) -> bool:
    seers = grader.program.patches[bug].seen_by
    units = (grader.grade_unit(u, quick=True) for u in grader.program.units if u.id in seers)
    try:
        parts = chain(grader.grade_entries(cheapest_first(grader.right().cases)), units)
        return all(part.outcome == "passed" for part in parts)
    except Raised:
        return False


def _tell_by_subsets(
    grader: ProgramGrader, known: dict[str, bool | None], untouched: Collection[str]
) -> dict[str, bool | None]:
    """The same by the choices of bugs with which the right program does what mine does. Where there
    is none, another mistake is in the way, and a bug at whose place nothing was written is taken to
    be left."""
    program, right = grader.program, grader.right()
    weights, refusal = grader.my_weights()
    choices = _subsets(known)
    if refusal or len(choices) > MOST_SUBSETS:
        return _left_where_untouched(known, untouched)
    mine = observe(grader.mine, weights, right.cases)
    sides = {left: Side(grader, compose(program, left)) for left in choices}
    for part in cheapest_first(right.cases):
        sides = {left: s for left, s in sides.items() if _does_the_same(grader, part, mine, s)}
    choices = list(sides)
    if not choices:
        return _left_where_untouched(known, untouched)
    if len(choices) > 1:  # they do the same, as where one bug crashes before the others: what was
        # written tells which it is, if one of them is nearer than all others
        choices = _nearest(choices, program, grader.job.files)
    return {b: _agreed(b, choices) if fixed is None else fixed for b, fixed in known.items()}


def _does_the_same(grader: ProgramGrader, part: str, mine: Observed, side: Side) -> bool:
    right = grader.right()
    theirs = observe_part(part, side, right.weights, right.cases)
    return behaves_alike(part, mine[part], theirs, grader.in_my_names)


def _left_where_untouched(
    known: Mapping[str, bool | None], untouched: Collection[str]
) -> dict[str, bool | None]:
    return {b: False if fixed is None and b in untouched else fixed for b, fixed in known.items()}


def _subsets(known: Mapping[str, bool | None]) -> list[tuple[str, ...]]:
    """Every choice of bugs that may be left, after what is known of them."""
    still = {bug for bug, fixed in known.items() if fixed is False}
    open_ = [bug for bug, fixed in known.items() if fixed is None]
    chosen = chain.from_iterable(combinations(open_, n) for n in range(len(open_) + 1))
    return [tuple(b for b in known if b in still or b in left) for left in chosen]


def _nearest(
    choices: Sequence[tuple[str, ...]], program: Program, files: Files
) -> list[tuple[str, ...]]:
    """The choices of bugs with which the right program differs from these files in fewest lines."""
    changes = {left: count_changed_lines(compose(program, left), files) for left in choices}
    return [left for left in choices if changes[left] == min(changes.values())]


def _agreed(bug: str, matches: Sequence[tuple[str, ...]]) -> bool | None:
    """Whether all choices that explain the program say the same of a bug."""
    told = {bug not in left for left in matches}
    return told.pop() if len(told) == 1 else None
