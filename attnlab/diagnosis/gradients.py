"""Values are right and gradients are not: which operation cuts or changes them?

A line is named when all gradients become right with it passing them on, or with the reference's
gradient put before it. Gradients are compared at the first value of each kind: what is only laid
out in another way learns through that one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import torch
from torch import Tensor

from attnlab.candidate.value_recorder import Value
from attnlab.diagnosis.explain import LIKELY, SURE, line_text
from attnlab.diagnosis.families import called
from attnlab.diagnosis.lines import grad_mode_line, gradient_line, nearest_difference
from attnlab.diagnosis.pairing import Side, equal, layouts
from attnlab.diagnosis.place import Sources
from attnlab.diagnosis.relations import Relation, relate
from attnlab.records.diagnosis import Diagnosis

CLOSE = 1e-4  # of the largest gradient of a value, since values are equal up to 2e-6
TINY = 1e-7  # of the largest gradient of all: no more than rounding
MOST_FIXES = 24  # a line may run once for each layer
OVERWRITTEN = re.compile(r"output \d+ of (?:\w+::)*(\w+)")
SHAPE = re.compile(r"Tensor \[([\d, ]+)\]")
COPIES = {"detach", "detach_", "data"}
FLAT = {"round", "floor", "ceil", "trunc", "fix", "sign", "sgn", "heaviside", "floor_divide"}

Put = Mapping[int, Tensor]  # gradients by the index of their value
Rerun = Callable[[Put, Collection[int]], Side]  # with calls that are to pass gradients on


@dataclass(frozen=True)
class GradientDraw:
    """One draw of inputs and of what is sent back from the output."""

    mine: Rerun
    theirs: Side
    wanted: Mapping[str, Tensor]  # the right gradients, by the names of inputs and parameters


@dataclass(frozen=True)
class Fix:
    """What is changed on the way back: calls that pass it on, or a value that gets the right one;
    `at` is the value of mine to name, `until` the last one of its lines."""

    at: int
    relation: Relation
    undo: tuple[int, ...] = ()
    put: int = -1
    place: tuple[str, int, int] | None = None  # of a backward: its file and lines


class Wrong(NamedTuple):
    """What has a wrong gradient: names of inputs and parameters, and first values of a kind."""

    names: dict[str, float]
    roots: dict[int, Tensor]  # with the right gradient

    @property
    def much(self) -> tuple[int, float, int]:
        """The less the better."""
        return len(self.names), sum(self.names.values()), len(self.roots)


@dataclass(frozen=True)
class GradientReport:
    """The lines that are wrong, and what learns wrongly by how much."""

    names: Mapping[str, float]
    diagnosis: tuple[Diagnosis, ...] = ()
    runs: int = 0


def diagnose_gradients(
    draw: GradientDraw, again: GradientDraw, sizes: Mapping[str, int], sources: Sources
) -> GradientReport:
    """Which lines of mine cut or change gradients; no names where all are right."""
    search = GradientSearch(draw, sizes)
    if not search.wrong.names:
        return GradientReport({})
    names = dict(search.wrong.names)
    frozen = [i for i, v in enumerate(search.side.values) if v.name in names and _is_frozen(v)]
    named = [_frozen(search.side, index, sources) for index in frozen]
    for index in frozen:
        search.ignored.add(search.side.values[index].name)
    search.repair()
    sure = not search.wrong_names and _is_confirmed(search.fixes, again, search.ignored)
    named += [_describe(search.start, fix, draw.theirs, sources, sure) for fix in search.fixes]
    lines = {(d.file, d.line): d for d in reversed(named)}
    found = tuple(reversed(lines.values())) if not search.wrong_names else tuple(named[:1])
    return GradientReport(names, found, search.runs)


class GradientSearch:
    """Finds fixes, one after the other, until all gradients are right."""

    def __init__(self, draw: GradientDraw, sizes: Mapping[str, int]) -> None:
        self.draw, self.sizes = draw, sizes
        self.fixes: list[Fix] = []
        self.ignored: set[str] = set()  # inputs and parameters whose fault is known
        self.runs = 0
        self.side = self.start = self._run([])
        self.roots = dict(_roots(self.start, draw.theirs))
        self.wrong = self._wrong(self.start)

    @property
    def wrong_names(self) -> set[str]:
        return set(self.wrong.names) - self.ignored

    def _run(self, fixes: Sequence[Fix]) -> Side:
        self.runs += 1
        put = {fix.put: self.roots[fix.put] for fix in fixes if fix.put >= 0}
        return self.draw.mine(put, [call for fix in fixes for call in fix.undo])

    def _wrong(self, side: Side) -> Wrong:
        names = wrong_names(side, self.draw.wanted)
        names = {n: much for n, much in names.items() if n not in self.ignored}
        largest = _largest(self.draw.wanted.values())
        roots = {
            i: right
            for i, right in self.roots.items()
            if i < len(side.values) and not _close(gradient_of(side.values[i]), right, largest)
        }
        return Wrong(names, roots)

    def repair(self) -> None:
        """Take fixes that make something right, then leave out those that are not needed."""
        self.wrong = self._wrong(self.side)
        for fix in _cuts(self.start, self.draw.theirs):
            if not self.wrong.names or len(self.fixes) == MOST_FIXES:
                break
            self._take(fix)
        passed: set[int] = set()
        while self.wrong.names and len(self.fixes) < MOST_FIXES:
            left = [i for i in self.wrong.roots if i not in passed and self.side.values[i].live]
            if not left:
                break
            passed.add(max(left))
            self._take(self._put_at(max(left)))
        if not self.wrong.names:
            self._drop_needless()

    def _take(self, fix: Fix) -> None:
        side = self._run([*self.fixes, fix])
        wrong = self._wrong(side)
        if side.values and wrong.much < self.wrong.much:
            self.fixes.append(fix)
            self.side, self.wrong = side, wrong

    def _drop_needless(self) -> None:
        for fix in list(self.fixes):
            left = [each for each in self.fixes if each is not fix]
            if left and not self._wrong(self._run(left)).names:
                self.fixes = left

    def _put_at(self, index: int) -> Fix:
        """The right gradient at a value, and the operation after it that does not give it."""
        side, right = self.side, set(self.roots) - set(self.wrong.roots)
        after = list(_region(side, index, right))
        found = relate(gradient_of(side.values[index]), self.roots[index], self.sizes)
        says = f": the gradient that it passes on is {found.says}" if found else ""
        own = [i for i in after if side.values[i].backward]
        if own:
            return _of_backward(side, index, own, says)
        hooked = next((i for i in (index, *after) if side.values[i].hooked), None)
        if hooked is not None:
            relation = Relation("gradient-hook", f"a hook changes the gradient{says}")
            file, line = side.values[hooked].hooked
            return Fix(hooked, relation, put=index, place=(file, line, line))
        at, relation = self._of_operation(index, after, says)
        return Fix(at, relation, put=index)

    def _of_operation(self, index: int, after: Sequence[int], says: str) -> tuple[int, Relation]:
        """The operation to name among those that a value goes into."""
        side = self.side
        if not self.roots[index].any():
            told = "a gradient goes back from here that the reference stops"
            return _taker(side, index), Relation("gradient-extra", told)
        for i in after:
            op = side.values[i].op
            if op in FLAT:
                told = f"{called(op)} has a gradient of zero everywhere: nothing before it learns"
                return i, Relation("gradient-zero", told)
            if op == "requires_grad_":
                told = f"{called(op)} freezes it: it never learns"
                return i, Relation("gradient-frozen", told)
        hidden = next((i for i in after if not side.values[i].tracked), None)
        if hidden is not None:
            told = f"{called(side.values[hidden].op)} is hidden from autograd{says}"
            return hidden, Relation("gradient-cut", told)
        copies = (i for i, first in enumerate(side.classes) if first == index and i > index)
        dead = (i for i in (*after, *copies) if _is_dead(side.values[i]))
        cut = next((i for i in dead if side.values[i].line), None)
        if cut is not None:
            told = f"what {called(side.values[cut].op)} gives is a constant for autograd"
            return cut, Relation(
                "gradient-cut", f"{told}: nothing before it learns through this line"
            )
        first = after[0] if after else index
        return first, Relation("gradient", f"the gradient is wrong from here on{says}")


def _of_backward(side: Side, index: int, own: Sequence[int], says: str) -> Fix:
    """The backward that a user wrote; of several on the way the last, which may not be the one."""
    names = list(dict.fromkeys(side.values[i].backward[0] for i in own))
    _, file, first, last = side.values[own[-1]].backward
    told = says or ": the gradient that it passes on is wrong"
    kind = "gradient-backward" if len(names) == 1 else "gradient"
    relation = Relation(kind, f"the backward of {' or '.join(names)} is wrong{told}")
    return Fix(own[-1], relation, put=index, place=(file, first, last) if first else None)


def diagnose_overwritten(side: Side, error: str, sources: Sources) -> tuple[Diagnosis, ...]:
    """Which line wrote over what the backward pass needs, by what that raised: whose output it was,
    else how large."""
    told, shape = OVERWRITTEN.search(error), SHAPE.search(error)
    needed = told[1].lower() if told else ""
    size = prod(map(int, shape[1].split(","))) if shape else 0
    sized, found, says = list[int](), -1, ""
    for index, value in enumerate(side.values):
        if not (value.op.endswith("_") and value.call >= 0 and value.line and value.inputs):
            continue
        made = side.values[value.inputs[0]].op.strip("_")
        if made and made.replace("_", "") in needed:
            found, says = index, f"the backward of {called(made)}"
        elif value.op.strip("_") + "backward" in needed:  # by the same line, before
            found, says = index, "the backward pass"
        elif value.numbers.numel() == size and not value.op.startswith("__"):
            sized.append(index)
        if says:
            break
    if not says and len({side.values[i].line for i in sized}) == 1:
        found, says = sized[0], "the backward pass"
    if not says:
        return ()
    says = f"{called(side.values[found].op)} writes over what {says} needs"
    fix = Fix(found, Relation("gradient-overwritten", says))
    return (_describe(side, fix, Side.empty(), sources, sure=False),)


# ---------------------------------------------------------------- what is compared


def gradient_of(value: Value) -> Tensor:
    """Zero where none reaches it."""
    none = value.gradient is None
    return torch.zeros_like(value.numbers.double()) if none else value.gradient.double()  # type: ignore[union-attr]


def wrong_names(side: Side, wanted: Mapping[str, Tensor]) -> dict[str, float]:
    """By how much the gradients of inputs and parameters are wrong, where they are; all of them
    where the call fell."""
    largest = _largest(wanted.values())
    held = {value.name: value for value in side.values if value.name}
    found = {}
    for name, right in wanted.items():
        if not side.values:
            found[name] = float("inf")
        elif name in held and held[name].numbers.shape == right.shape:
            mine = gradient_of(held[name])
            if not _close(mine, right, largest):
                found[name] = float((mine - right).abs().nan_to_num(float("inf")).max())
    return found


def _largest(gradients: Collection[Tensor]) -> float:
    finite = (g[g.isfinite()].abs() for g in gradients)
    return max((float(g.max()) for g in finite if g.numel()), default=0.0)


def _close(mine: Tensor, right: Tensor, largest: float) -> bool:
    bound = CLOSE * _largest([right]) + TINY * largest
    return torch.allclose(mine, right.double(), rtol=0.0, atol=bound, equal_nan=True)


def _roots(mine: Side, theirs: Side) -> Iterator[tuple[int, Tensor]]:
    """The first value of each kind that both have and that learns in theirs, with the gradient
    that it should have."""
    for index, value in enumerate(mine.values):
        one = value.numbers.numel() < 2 and not value.name  # which others may equal by accident
        plain = value.numbers.dtype is torch.bool or one
        if plain or mine.classes[index] != index:
            continue
        found = theirs.find(mine, index)
        if not found:
            continue
        other = theirs.values[theirs.classes[found[0]]]
        right = _laid_out(other, value.numbers) if other.live else None
        if right is not None:
            yield index, right


def _laid_out(other: Value, like: Tensor) -> Tensor | None:
    """The gradient of a value of theirs, in the layout that makes the value that of mine."""
    gradient, numbers = gradient_of(other), other.numbers.double()
    if numbers.shape == like.shape and equal(numbers, like):
        return gradient
    places = torch.arange(numbers.numel()).reshape(numbers.shape)
    for order in layouts(places, tuple(like.shape)):
        if equal(numbers.flatten()[order.flatten()].reshape(like.shape), like):
            return gradient.flatten()[order.flatten()].reshape(like.shape)
    return None


# ---------------------------------------------------------------- what may be wrong


def _cuts(mine: Side, theirs: Side) -> Iterator[Fix]:
    """Lines that cut a gradient, or that autograd does not see; the last ones first."""
    lines: dict[tuple[str, int, str], list[int]] = {}
    for index, value in enumerate(mine.values):
        if value.call < 0 or value.numbers.dtype is torch.bool:
            continue
        inputs = any(mine.values[i].live for i in value.inputs)
        if not inputs or (value.live and value.tracked):
            continue
        if not (value.live or _learns(mine, index, theirs)):
            continue  # the reference cuts it as well
        lines.setdefault((value.file, value.line, value.op), []).append(index)
    for (_, _, op), made in reversed(lines.items()):
        undo = [mine.values[i].call for i in made]
        if not mine.values[made[0]].tracked:
            undo += _untracked_after(mine, made)
            says = f"autograd is off here: it does not see {called(op)}"
        elif op in COPIES:
            says = f"{called(op)} cuts the gradient: nothing before it learns through this line"
        else:
            says = f"{called(op)} cuts the gradient: its result is a constant for autograd"
        yield Fix(made[0], Relation("gradient-cut", says), undo=tuple(dict.fromkeys(undo)))


def _learns(mine: Side, index: int, theirs: Side) -> bool:
    """Whether the reference sends a gradient back through a value, or does not have it."""
    found = theirs.find(mine, index)
    return not found or theirs.values[theirs.classes[found[0]]].live


def _taker(side: Side, index: int) -> int:
    """The first step that computes something else from a value."""
    alike = {i for i, first in enumerate(side.classes) if first == index}
    takers = (i for i, v in enumerate(side.values) if alike & set(v.inputs) and i not in alike)
    return next(takers, index)


def _is_dead(value: Value) -> bool:
    return not value.live and value.numbers.dtype is not torch.bool


def _untracked_after(side: Side, start: Sequence[int]) -> list[int]:
    """The calls that follow from some while autograd is off."""
    reached, calls = set(start), []
    for index in range(min(start) + 1, len(side.values)):
        value = side.values[index]
        if not value.tracked and reached & set(value.inputs):
            reached.add(index)
            calls.append(value.call)
    return calls


def _region(side: Side, start: int, right: Collection[int]) -> Iterator[int]:
    """The values that one goes into, up to those whose gradient is right."""
    reached = {start}
    for index in range(start + 1, len(side.values)):
        if reached & set(side.values[index].inputs):
            yield index
            if index not in right:
                reached.add(index)


def _is_frozen(value: Value) -> bool:
    return value.call < 0 and not value.live


def _frozen(side: Side, index: int, sources: Sources) -> Diagnosis:
    """A parameter that requires no gradient, at the line that says so."""
    name = side.values[index].name
    made = next((v for v in side.values if v.op == "requires_grad_"), None)
    files = dict.fromkeys(v.file for v in side.values if v.file in sources.mine)
    file, line = (made.file, made.line) if made else _line_with(sources, files, "requires_grad")
    return Diagnosis(
        file=file,
        line=line,
        end_line=line,
        source=line_text(sources.mine, file, line),
        relation="gradient-frozen",
        message=f"{name} requires no gradient: it never learns",
        confidence=SURE if made else LIKELY,
        confirmed=made is not None,
    )


def _line_with(sources: Sources, files: Collection[str], word: str) -> tuple[str, int]:
    for file in files:
        for number, text in enumerate(sources.mine[file].splitlines(), 1):
            if word in text:
                return file, number
    return next(iter(files), ""), 0


# ---------------------------------------------------------------- what is said


def _line_that_differs(sources: Sources, file: str, first: int, last: int) -> int:
    """The line of a backward to name where both files are the same but for it; 0 for none."""
    text = sources.mine.get(file, "")
    near = (nearest_difference(text, theirs, first) for theirs in set(sources.theirs.values()))
    return next((line for line in near if line and first < line <= last), 0)


def _is_confirmed(fixes: Sequence[Fix], again: GradientDraw, ignored: Collection[str]) -> bool:
    """Whether the same fixes make other gradients right, which are wrong without them."""
    start = again.mine({}, ())
    before = set(wrong_names(start, again.wanted)) - set(ignored)
    roots = dict(_roots(start, again.theirs))
    if not fixes or not before or any(f.put >= 0 and f.put not in roots for f in fixes):
        return False
    put = {fix.put: roots[fix.put] for fix in fixes if fix.put >= 0}
    side = again.mine(put, [call for fix in fixes for call in fix.undo])
    return not set(wrong_names(side, again.wanted)) - set(ignored)


def _describe(side: Side, fix: Fix, theirs: Side, sources: Sources, sure: bool) -> Diagnosis:
    value = side.values[fix.at]
    file, line, end = fix.place or (value.file, value.line, value.line)
    if not (value.tracked or fix.place):
        where = grad_mode_line(sources.mine.get(file, ""), (line, *value.callers))
        line, end = where or line, line if 0 < where < line else where or line
    differs = _line_that_differs(sources, file, line, end)
    guessed = bool(value.backward and fix.place and not differs) and end - line > 1
    if guessed:
        function, *_ = value.backward
        taken = side.values[fix.put].name.rpartition(".")[2]
        differs = gradient_line(sources.mine.get(file, ""), line, function, taken)
    line, end = (differs, end if guessed else differs) if differs else (line, end)
    found = [] if value.op in COPIES else theirs.find(side, fix.at)
    other = theirs.values[found[0]] if found else None
    return Diagnosis(
        file=file,
        line=line,
        end_line=end,
        source=line_text(sources.mine, file, line),
        relation=fix.relation.kind,
        message=fix.relation.says,
        confidence=SURE if sure and not guessed else LIKELY,
        confirmed=sure and fix.relation.kind != "gradient" and not guessed,
        their_file=other.file if other else "",
        their_line=other.line if other else 0,
        their_source=line_text(sources.theirs, other.file, other.line) if other else "",
    )
