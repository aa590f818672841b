"""Find the steps that are wrong, by putting the reference's values in their place.

The first step whose inputs are right and whose result the reference does not have is given a value
of the reference; the module runs on with it, and so on, until the output is right. A step without
which it is wrong again is a fault. Only what such a replay has confirmed is named.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product

from torch import Tensor

from attnlab.candidate.value_recorder import Value
from attnlab.diagnosis.borrowed import lent, written_mask, written_masks
from attnlab.diagnosis.families import same_family
from attnlab.diagnosis.pairing import CLOSE, Pairing, Side, equal, equal_results
from attnlab.diagnosis.relations import Relation

Patches = Mapping[tuple[int, int], Tensor]  # by call and slot
Rerun = Callable[[Patches], Side]  # runs a module with some results replaced
FAULTS = 5
REPAIRS = 24  # steps that are repaired: a line may run once for each layer
TRIES = 6  # values of the reference that are tried for a step
MOST_RUNS = 160
MOST_VALUES = 20_000  # in all runs together: a loop over entries makes thousands in each
SECONDS = 10.0  # of CPU for a search
MOST_SCORED = 50_000  # pairs of a step and a value of theirs that are looked at
MOST_TOGETHER = 3  # steps for which each combination of values may be tried
LEAST = 3  # points that a value needs to be tried
PLAIN = 7  # the same operation on the same values, and nothing else of mine is its result


@dataclass(frozen=True)
class Repair:
    """A step of mine that got a value of theirs; what both were, for the message."""

    mine: int  # indices of the values
    theirs: int  # or -1, where it got another value of mine
    before: Side  # mine as it was then, with the repairs before it
    pairing: Pairing
    value: Tensor  # that it got, in its shape
    region: tuple[int, ...] = ()  # steps before it that the reference has no value for
    swapped: tuple[int, ...] = ()  # results of its call in the order that is right
    closes: bool | None = None  # of a mask of theirs: whether what it closes is True, or low, here
    score: float = 0.0  # how likely it is, by what the two steps take
    told: Relation | None = None  # how it is wrong, where a guess made the output right
    bold: bool = False  # whether nothing after it has become right by it alone
    telling: bool = False  # whether what is computed from it has become right by it

    @property
    def key(self) -> tuple[int, int]:
        made = self.before.values[self.mine]
        return made.call, made.slot

    @property
    def place(self) -> tuple[str, int]:
        made = self.before.values[self.mine]
        return made.file, made.line


@dataclass(frozen=True)
class Repaired:
    """The repairs that make the output right; `whole` is False where they do not."""

    repairs: tuple[Repair, ...]  # the first of each line
    all: tuple[Repair, ...]
    first: Pairing
    whole: bool
    runs: int

    @property
    def vague(self) -> int:
        """The repairs of which the fault may lie before."""
        return sum(bool(repair.region) for repair in self.repairs)


class Search:
    """Repairs mine step by step."""

    def __init__(
        self, mine: Rerun, theirs: Side, until: float = float("inf"), bold: bool = False
    ) -> None:
        """Nothing is begun after `until`, by `time.monotonic`. `bold` also repairs steps after
        which nothing more is right: there may be two faults."""
        self.rerun, self.theirs, self.bold = mine, theirs, bold
        self.runs, self.most_runs, self.scored = 0, MOST_RUNS, 0
        self.ends, self.until = time.process_time() + SECONDS, until
        self.patches: dict[tuple[int, int], Tensor] = {}
        self.repairs: list[Repair] = []
        self.passed: dict[tuple[int, int], int] = {}  # steps that are left alone

    def run(self, patches: Patches) -> Side:
        self.runs += 1
        return self.rerun(patches)

    def is_right(self, side: Side) -> bool:
        return equal_results(side, self.theirs)

    def find(self, start: Side) -> Repaired:
        """Repair until the output is right, then leave out what it does not need."""
        self.most_runs = min(MOST_RUNS, max(2, MOST_VALUES // max(1, len(start.values))))
        first = pairing = Pairing(start, self.theirs)
        swap = None if self.bold else self._exchanged(start, pairing)
        if swap:
            return Repaired((swap,), (swap,), first, whole=True, runs=self.runs)
        side = start
        while (
            not self.is_right(side) and len(self.repairs) < REPAIRS and self.runs < self.most_runs
        ):
            step = self._next(side, pairing)
            if step is None:
                break
            side, pairing = step
        whole = self.is_right(side)
        needed = self._needed() if whole else []
        told = sorted(needed, key=lambda r: (bool(r.value.isfinite().any()), -r.mine))
        places = {repair.place: repair for repair in told}  # infinities alone say little
        named = tuple(sorted(places.values(), key=lambda repair: repair.mine))[:FAULTS]
        one = self._shared_operand(start, first, named) if len(named) > 1 else None
        if one:
            return Repaired((one,), (one,), first, whole=True, runs=self.runs)
        return Repaired(named, tuple(needed), first, whole and bool(needed), self.runs)

    def _next(self, side: Side, pairing: Pairing) -> tuple[Side, Pairing] | None:
        """Mine with the most upstream line repaired that can be; None where there is none.

        What one line makes several times from right values, queries and keys, is repaired at once.
        """
        for index in pairing.wrong:
            if time.process_time() > self.ends or time.monotonic() > self.until:
                return None
            if not self._is_open(side, index) or self._region(side, pairing, index) is None:
                continue
            group = self._together(side, pairing, index)
            found = self._repair(side, pairing, group)
            if found is None and len(group) > 1:
                found = self._repair(side, pairing, [index])
            if found is not None:
                return found
            self.passed |= {_key(side, index): index}
        return None

    def _is_open(self, side: Side, index: int) -> bool:
        key = _key(side, index)
        return (
            not is_room(side.values[index]) and key not in self.passed and key not in self.patches
        )

    def _together(self, side: Side, pairing: Pairing, index: int) -> list[int]:
        """The steps of the same line and operation that can be repaired as well."""
        made = side.values[index]
        alike = (made.file, made.line, made.op)
        return [
            i
            for i in pairing.wrong
            if (v := side.values[i]) and (v.file, v.line, v.op) == alike
            if self._is_open(side, i) and self._region(side, pairing, i) is not None
        ]

    def _repair(
        self, side: Side, pairing: Pairing, group: list[int]
    ) -> tuple[Side, Pairing] | None:
        """Mine with the best values for these steps; None where none makes anything right."""
        choices = [list(self._candidates(side, pairing, index)) for index in group]
        if not all(choices):
            return None
        best: tuple[float, tuple[Repair, ...], Side, Pairing] | None = None
        for chosen in combinations_of(choices):
            if self.runs >= self.most_runs:
                break
            if done := self._everywhere(chosen):
                return done
            after = self.run({**self.patches, **{r.key: r.value for r in chosen}})
            paired = Pairing(after, self.theirs, pairing)
            gain = self._gain(pairing, paired, group[0], after) - len(group) + 1
            if self.bold and all(r.score >= PLAIN and not r.region for r in chosen):
                gain = max(gain, 0.5)  # another fault may keep what follows wrong
            if gain > 0 and (best is None or gain > best[0]):
                best = gain, chosen, after, paired
            again = gain > 0 and all(self._is_as_before(repair) for repair in chosen)
            if gain == float("inf") or again:
                break
        if best is None:
            return None
        _, chosen, after, paired = best
        telling = self._is_telling(pairing, paired, chosen)
        self.repairs += [replace(repair, telling=telling) for repair in chosen]
        self.patches |= {repair.key: repair.value for repair in chosen}
        return after, paired

    def _everywhere(self, chosen: Sequence[Repair]) -> tuple[Side, Pairing] | None:
        """Mine with all that the lines make repaired, as in each layer; None where the output is
        not right then."""
        found = list[Repair]()
        for repair in chosen:
            side, pairs = repair.before, self._executions(repair)
            for index, other in pairs:
                value = lent(self.theirs, other, side, index)
                if value is None:
                    return None
                found.append(replace(repair, mine=index, theirs=other, value=value))
        if len(found) <= len(chosen) or self.runs >= self.most_runs:
            return None
        patches = {**self.patches, **{r.key: r.value for r in found}}
        after = self.run(patches)
        if not self.is_right(after):
            return None
        self.repairs += found
        self.patches = patches
        return after, Pairing(after, self.theirs, chosen[0].pairing)

    def _executions(self, repair: Repair) -> list[tuple[int, int]]:
        """The steps of the repaired line from this one on, all wrong, each beside the one of theirs
        that runs as late; none where there are more of one."""
        if repair.theirs < 0 or repair.region or repair.closes is not None:
            return []
        mine = _same_step(repair.before, repair.mine)
        theirs = _same_step(self.theirs, repair.theirs)
        wrong = set(repair.pairing.wrong).issuperset(mine)
        return list(zip(mine, theirs, strict=True)) if wrong and len(mine) == len(theirs) else []

    def _shared_operand(
        self, start: Side, first: Pairing, named: Sequence[Repair]
    ) -> Repair | None:
        """The value of mine that all the faults take where the reference takes one made of it: it
        lacks a step, as a residual that both a norm and a later sum would have."""
        pairs = set[tuple[int, int]]()
        for repair in named:
            if repair.theirs < 0:
                return None
            mine = {c for c in repair.pairing.input_classes(repair.mine) if c >= 0}
            wanted = repair.pairing.their_input_classes(repair.theirs)
            taken, lost = mine - wanted, wanted - mine
            if len(taken) != 1 or len(lost) != 1:
                return None
            pairs.add((taken.pop(), lost.pop()))
        if len(pairs) != 1:
            return None
        (taken_class, lost_class), before = pairs.pop(), named[0].mine
        made = [i for i in range(before) if start.values[i].call >= 0]
        index = next((i for i in reversed(made) if first.class_of(i) == taken_class), None)
        if index is None or taken_class not in self.theirs.ancestors(lost_class):
            return None
        value = lent(self.theirs, lost_class, start, index)
        if value is None or not self.is_right(self.run({_key(start, index): value})):
            return None
        return Repair(index, lost_class, start, first, value)

    def _is_telling(self, before: Pairing, after: Pairing, chosen: Sequence[Repair]) -> bool:
        """Whether something became right that is more than another layout of what was put there:
        then it was wrong, even if a later repair makes up for it."""
        if any(repair.mine >= len(after.matches) for repair in chosen):
            return False  # it raised
        lent = {after.class_of(repair.mine) for repair in chosen}
        now = set(before.wrong) - set(after.wrong) - {repair.mine for repair in chosen}
        plain = all(repair.theirs >= 0 and not repair.region for repair in chosen)
        return plain and any(after.matches[i] and after.class_of(i) not in lent for i in now)

    def _is_as_before(self, repair: Repair) -> bool:
        """Whether the same line got a value of the same line of theirs before, as in each layer."""
        return any(
            repair.place == known.place and self._their_place(repair) == self._their_place(known)
            for known in self.repairs
        )

    def _their_place(self, repair: Repair) -> tuple[str, int, str]:
        if repair.theirs < 0:
            return "", 0, ""  # it got a value of mine
        value = self.theirs.values[repair.theirs]
        return value.file, value.line, value.op

    def _region(self, side: Side, pairing: Pairing, index: int) -> tuple[int, ...] | None:
        """The steps before it that were left alone; None where another wrong one comes before."""
        wrong, found = set(pairing.wrong), set[int]()
        todo = [i for i in side.values[index].inputs if i in wrong]
        while todo:
            here = todo.pop()
            made = side.values[here]
            if (made.call, made.slot) in self.patches:
                continue
            if not is_room(made) and (made.call, made.slot) not in self.passed:
                return None
            if made.call < 0 or not is_room(made):  # what others fill is not what is wrong
                found.add(here)
            todo += [i for i in made.inputs if i in wrong and i not in found]
        return tuple(sorted(found))

    def _gain(self, before: Pairing, after: Pairing, index: int, side: Side) -> float:
        """How many steps have become right besides the one that was repaired, with values that
        nothing of mine was before: else `v` averaged over copies of itself were right."""
        if self.is_right(side):
            return float("inf")
        if len(side.values) <= max(before.wrong, default=0):
            return 0  # it raised, or took another way
        still = set(after.wrong)
        right = [i for i in before.wrong if i > index and i not in still]
        new = [i for i in right if after.is_new(i, before)]
        if len(new) < len(right):  # an old value hides those that it is made of, which may be wrong
            new = [i for i in new if after.matches[i]]
        return len(new)

    # ------------------------------------------------------------ what may be put there

    def _candidates(self, side: Side, pairing: Pairing, index: int) -> Iterator[Repair]:
        """Values to be put in place of a step, the likeliest first."""
        region = self._region(side, pairing, index) or ()
        scored: list[tuple[float, int, Tensor]] = []
        made = side.values[index]
        others = sorted(pairing.needed) if self.scored < MOST_SCORED else []
        self.scored += len(others)
        alike = self._with_same_numbers(side, index) if others else []
        for other in others:
            score = self._score(side, pairing, index, other, region, alike[other])
            if score >= LEAST:
                value = lent(self.theirs, other, side, index)
                if value is not None and not equal(value, made.numbers.double()):
                    scored.append((score, other, value))
        for source in {i for step in (index, *region) for i in side.values[step].inputs}:
            taken = side.values[source]
            if taken.numbers.shape == made.numbers.shape and source not in pairing.wrong:
                scored.append((LEAST + 0.5, -1 - source, taken.numbers.double()))
        theirs = self.theirs.result
        if index == side.output and theirs is not None and theirs.shape != made.numbers.shape:
            scored.append((LEAST + 1, self.theirs.output, theirs))
        scored.sort(key=lambda each: (-each[0], each[1]))
        for score, other, value in scored[:TRIES]:
            yield Repair(index, other, side, pairing, value, region, score=score, bold=self.bold)
        tried = [value for _, _, value in scored[:TRIES]]
        for other, value, closes in written_masks(self.theirs, made.numbers):
            if not any(equal(value, each) for each in (*tried, made.numbers.double())):
                tried.append(value)
                yield Repair(index, other, side, pairing, value, region, closes=closes, score=score)

    def _score(
        self,
        side: Side,
        pairing: Pairing,
        index: int,
        other: int,
        region: tuple[int, ...],
        same_numbers: bool,
    ) -> float:
        mine, theirs = side.values[index], self.theirs.values[other]
        if theirs.call < 0 or theirs.numbers.numel() < 2 <= mine.numbers.numel():
            return 0
        sources = pairing.input_classes(index)
        for inside in region:
            sources |= pairing.input_classes(inside)
        sources = {c for c in sources if c >= 0}
        wanted = pairing.their_input_classes(other)
        alike = same_family(mine.op, theirs.op)
        if not (alike or same_numbers) and (not sources or self.theirs.classes[other] in sources):
            return 0  # two tables of nothing alike, or what the step takes is no result of it
        if side.fed[index] and not self.theirs.fed[other]:
            return 0
        score = 4.0 if sources == wanted else 2.0 if sources & wanted and alike else 0.0
        if region and sources & self.theirs.ancestors(other):
            score += 1.0
        score += 2.0 * alike
        score += 1.0 * (other in pairing.unclaimed)
        score += 0.5 * (mine.numbers.shape == theirs.numbers.shape)
        score += 2.0 * same_numbers
        score += 4.0 * (index == side.output and other == self.theirs.output)
        return score

    def _with_same_numbers(self, side: Side, index: int) -> list[bool]:
        """Which values of theirs hold the same numbers, at whatever places."""
        wanted, prints = side.prints[index], self.theirs.prints
        if side.values[index].numbers.numel() <= 2:
            return [False] * len(prints)
        largest = prints.abs().nan_to_num(0.0, 0.0, 0.0).amax(dim=1, keepdim=True)
        near = (prints - wanted).abs() <= CLOSE * largest.clamp(min=1e-6)
        same = near | (prints == wanted) | (prints.isnan() & wanted.isnan())
        return list(same.all(dim=1).tolist())

    def _exchanged(self, side: Side, pairing: Pairing) -> Repair | None:
        """The line whose results, all right by themselves, are taken in another order."""
        taken = {c for step in pairing.sources for c in pairing.input_classes(step)}
        calls: dict[int, list[int]] = {}
        for index, value in enumerate(side.values):
            if value.call >= 0:
                calls.setdefault(value.call, []).append(index)
        lines: dict[tuple[str, int, str, int], list[list[int]]] = {}
        for made in calls.values():
            first = side.values[made[0]]
            shapes = {side.values[i].numbers.shape for i in made}
            near = any(pairing.class_of(i) in taken for i in made)
            if near and 2 <= len(made) <= 3 and len(shapes) == 1:
                key = (first.file, first.line, first.op, len(made))
                lines.setdefault(key, []).append(made)
        for (*_, many), together in lines.items():
            for order in list(permutations(range(many)))[1:]:
                lent = {k: v for made in together for k, v in in_order(side, made, order).items()}
                if self.is_right(self.run(lent)):
                    made = together[0]
                    first = side.values[made[order[0]]]
                    return Repair(made[0], -1, side, pairing, first.numbers, swapped=order)
        return None

    def same_value(self, repair: Repair, side: Side) -> dict[tuple[int, int], Tensor] | None:
        """What a repair puts in place for other inputs; None where nothing fits."""
        made = side.values[repair.mine] if repair.mine < len(side.values) else None
        if made is None or made.call != repair.key[0] or repair.told:
            return None
        if repair.swapped:
            where = (made.file, made.line, made.op)
            calls: dict[int, list[int]] = {}
            for i, v in enumerate(side.values):
                if (v.file, v.line, v.op) == where:
                    calls.setdefault(v.call, []).append(i)
            alike = [c for c in calls.values() if len(c) == len(repair.swapped)]
            return {k: v for c in alike for k, v in in_order(side, c, repair.swapped).items()}
        if repair.theirs < 0:
            return {repair.key: side.values[-1 - repair.theirs].numbers}
        if repair.theirs >= len(self.theirs.values):
            return None
        if repair.closes is not None:
            value = None
            if repair.theirs in self.theirs.masks:
                value = written_mask(self.theirs, repair.theirs, made.numbers, repair.closes)
            return None if value is None else {repair.key: value}
        value = lent(self.theirs, repair.theirs, side, repair.mine)
        if value is None and repair.mine == side.output:
            value = self.theirs.result
        return None if value is None else {repair.key: value}

    # ------------------------------------------------------------ which are needed

    def _needed(self) -> list[Repair]:
        """The repairs that were telling, and those without whose line the output is wrong."""
        told = {repair.place for repair in self.repairs if repair.telling}
        places = [p for p in dict.fromkeys(r.place for r in self.repairs) if p not in told]
        kept = list(self.repairs)
        if len(places) + len(told) > 1:
            for place in places:
                left = [repair for repair in kept if repair.place != place]
                if left and self.is_right(self.run({r.key: r.value for r in left})):
                    kept = left
        return kept


def combinations_of(choices: Sequence[Sequence[Repair]]) -> list[tuple[Repair, ...]]:
    """One value for each step, the likeliest together first; two steps seldom want the same."""
    ranked = [list(enumerate(each)) for each in choices]
    if len(choices) > MOST_TOGETHER:  # as of a line that runs in each layer
        ranks = range(max(map(len, choices)))
        return [tuple(each[min(rank, len(each) - 1)] for each in choices) for rank in ranks]

    def cost(chosen: tuple[tuple[int, Repair], ...]) -> tuple[int, int]:
        taken = [repair.theirs for _, repair in chosen]
        return len(taken) - len(set(taken)), sum(rank for rank, _ in chosen)

    found = sorted(product(*ranked), key=cost)[: TRIES * len(choices)]
    return [tuple(repair for _, repair in chosen) for chosen in found]


def in_order(
    side: Side, made: Sequence[int], order: Sequence[int]
) -> dict[tuple[int, int], Tensor]:
    """The results of a call, taken in another order."""
    pairs = zip(made, order, strict=True)
    return {_key(side, i): side.values[made[o]].numbers for i, o in pairs}


def is_room(made: Value) -> bool:
    """Whether a value is no step to be wrong: from outside, or one number for others to fill."""
    one = not made.inputs and made.numbers.numel() > 1 and not made.numbers.double().std()
    return made.call < 0 or bool(one)


def _same_step(side: Side, index: int) -> list[int]:
    """What a line computes by one operation, from a value on."""
    made = side.values[index]
    place = made.file, made.line, made.op, made.slot
    return [
        i
        for i, v in enumerate(side.values)
        if i >= index and (v.file, v.line, v.op, v.slot) == place and i not in side.made_of
    ]


def _key(side: Side, index: int) -> tuple[int, int]:
    return side.values[index].call, side.values[index].slot
