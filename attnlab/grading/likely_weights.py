"""Load the reference's weights into a module that may be wrong, so that no map of them is proven.

The likeliest map by names and shapes is changed where values go wrong: a step that takes right
values likely holds what a step of the reference holds that takes the same ones, and what it holds
if it gives a wrong value is likely wrong. A map is better the more values of the two are equal;
what the right steps hold is kept. A step that no content makes right is likely the fault itself.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from torch import Tensor

from attnlab.diagnosis.borrowed import lent
from attnlab.diagnosis.families import same_family
from attnlab.diagnosis.pairing import Pairing, Side
from attnlab.probe.answers import Inputs
from attnlab.probe.probe import Probe
from attnlab.probe.weights.match import LikelyMaps

MOST = 40  # maps that are tried
SECONDS = 10.0  # of CPU
SUSPECTS = 4  # parameters of which another content is tried, after each better map; and as many
NEAR = 4  # steps before a wrong one
SOURCES, LENT = 3, 4  # wrong steps that get a value of the reference, and values for each
GAIN = 3  # values that become right for each where it was what was wrong


class Tried(NamedTuple):
    """A map with the parameters that it makes, and how it went."""

    weights: dict[str, Tensor]
    entries: dict[str, str]
    wrong: tuple[int, int]  # values of either side without a counterpart; unusual matrices
    right_names: frozenset[str]  # of parameters that only right steps hold
    suspects: tuple[str, ...]  # that wrong ones hold, the first step first
    wanted: dict[str, set[str]]  # what the reference's steps hold that take the same values
    pairing: Pairing


def load_likely_weights(
    probe: Probe, guess: Mapping[str, str], until: float
) -> dict[str, str] | None:
    """The map with which most values are equal, once it is loaded; None where names and shapes
    allow none. The `guess` of other sizes is taken where it fits these. None is tried after
    `until`, by `time.monotonic`."""
    inputs = probe.draw("none")
    maps = LikelyMaps(probe.match_context([inputs]), probe.sizes)
    made = maps.made_by(guess) if guess else None
    if made is not None:
        probe.set_parameters(made)
        return dict(guess)
    best = _Search(probe, inputs, maps, until).run()
    if best is None:
        return None
    probe.set_parameters(best.weights)
    return best.entries


class _Search:
    """The search for the map with which most values are equal."""

    def __init__(self, probe: Probe, inputs: Inputs, maps: LikelyMaps, until: float) -> None:
        assert probe.reference is not None
        self.probe, self.inputs, self.maps = probe, inputs, maps
        self.theirs = Side(probe.reference.values(inputs))  # with the weights that the maps have
        self.ends, self.until = time.process_time() + SECONDS, until
        self.best: Tried | None = None
        self.known = list[Tried]()
        self.fixed: dict[str, str] = {}  # what right steps hold
        self.banned: dict[str, set[str]] = {}  # what parameters were found not to hold
        self.left = [""]  # parameters to change; first of all none
        self.lent: dict[tuple[int, int], Tensor] = {}  # values of theirs in place of wrong ones

    def run(self) -> Tried | None:
        """The best map that is found in time. Where a step stays wrong whatever parameters hold,
        the reference's value is put there, and what comes after it is looked at."""
        alone: Tried | None = None  # the best one of which nothing was lent
        while len(self.known) < MOST and not self._is_late():
            if self.left:
                self._change(self.left.pop(0))
                continue
            alone = alone or self.best
            if not (self.best and self._lend(self.best)):
                break
        few = alone and self.best and alone.wrong[0] - self.best.wrong[0] <= GAIN * len(self.lent)
        return alone if few else self.best

    def _is_late(self) -> bool:
        late = time.process_time() > self.ends or time.monotonic() > self.until
        return late and bool(self.known)

    def _change(self, name: str) -> None:
        """Try the likeliest maps with another content of a parameter."""
        best, keep = self.best, self.fixed
        if best and name:
            self.banned.setdefault(name, {best.entries[name]})
            if name in keep:  # it may be exchanged with another that is right by accident
                shape = best.weights[name].shape
                keep = {n: e for n, e in keep.items() if best.weights[n].shape != shape}
        never = {(name, said) for said in self.banned.get(name, ())}
        tried = list[Tried]()
        for weights, entries in self.maps.cheapest(keep, never, best.wanted if best else {}):
            if self._is_late():
                break
            same = next((each for each in self.known if each.entries == entries), None)
            tried.append(same or self._try(weights, entries, self.lent))
            self.known += [] if same else tried[-1:]
        better = min(tried, key=lambda each: each.wrong, default=None)
        if better and (best is None or better.wrong < best.wrong):
            self._take(better)
        elif better and name:
            self.banned[name].update(each.entries[name] for each in tried)
            self.left.append(name)  # what else it may hold is tried after the others

    def _take(self, better: Tried) -> None:
        self.best = better
        self.fixed = {n: said for n, said in better.entries.items() if n in better.right_names}
        self.left = ["", *[n for n in better.suspects if n in self.maps.names]]
        self.banned.clear()

    def _lend(self, best: Tried) -> bool:
        """Put a value of theirs in place of a wrong one that is made of right ones; whether less is
        wrong then."""
        mine, tried = best.pairing.mine, list[tuple[Tried, dict[tuple[int, int], Tensor]]]()
        for index in islice(best.pairing.sources, SOURCES):
            made = mine.values[index]
            for other in self._alike(best.pairing, index)[:LENT]:
                value = lent(self.theirs, other, mine, index)
                if value is not None and not self._is_late():
                    put = {**self.lent, (made.call, made.slot): value}
                    tried.append((self._try(best.weights, best.entries, put), put))
        better, put = min(tried, key=lambda each: each[0].wrong, default=(best, self.lent))
        if better.wrong >= best.wrong:
            return False
        self.lent, self.known = put, [better]
        self._take(better)
        return True

    def _alike(self, pairing: Pairing, index: int) -> list[int]:
        """Values of theirs that no value of mine is, those that are made of the same ones first."""
        taken = pairing.input_classes(index)
        shared = {i: len(taken & pairing.their_input_classes(i)) for i in pairing.unclaimed}
        size = pairing.mine.values[index].numbers.numel()
        there = self.theirs.values
        fits = [i for i, n in shared.items() if n and there[i].numbers.numel() == size]
        op = pairing.mine.values[index].op
        return sorted(fits, key=lambda i: (-shared[i], not same_family(op, there[i].op), i))

    def _try(
        self,
        weights: dict[str, Tensor],
        entries: dict[str, str],
        put: Mapping[tuple[int, int], Tensor],
    ) -> Tried:
        """How a map goes, with some values put in place of others."""
        probe = self.probe
        probe.set_parameters(weights)
        mine = Side(probe.values(self.inputs, put))
        pairs = Pairing(mine, self.theirs, self.best.pairing if self.best else None)
        wrong, right_names = set(pairs.wrong), set[str]()
        suspects = dict[str, None]()
        odd = sum(
            _is_odd(value.op, entries.get(mine.values[i].name, ""))
            for value in mine.values
            for i in value.inputs
        )
        odd += _turned_alone(entries)
        uses = {index: taken for index, taken, _ in _uses(mine, weights.keys())}
        for index, taken in uses.items():
            if index in wrong:
                suspects.update(dict.fromkeys(sorted(taken)))
            else:
                right_names |= taken
        # What right steps hold as well comes last: a part of it may be wrong; then what the first
        # wrong step takes from right ones, which may hold each other's.
        doubted = [*sorted(suspects, key=right_names.__contains__)[:SUSPECTS]]
        doubted += [n for n in _before(mine, wrong, uses) if n not in doubted][:SUSPECTS]
        count = len(wrong) + len(pairs.unclaimed), odd
        kept = frozenset(right_names.difference(suspects))
        wanted = _wanted(probe, mine, self.theirs)
        return Tried(weights, entries, count, kept, (*doubted,), wanted, pairs)


def _before(side: Side, wrong: set[int], uses: Mapping[int, frozenset[str]]) -> list[str]:
    """The parameters of right steps shortly before the first wrong ones, the nearest first."""
    found = dict[str, None]()
    first = (i for i in sorted(wrong) if not wrong.intersection(side.values[i].inputs))
    here = {i for index in islice(first, NEAR) for i in side.values[index].inputs}
    for _ in range(NEAR):
        for index in sorted(here, reverse=True):
            found.update(dict.fromkeys(sorted(uses.get(index, ()))))
        here = {i for index in here for i in side.values[index].inputs} - wrong
    return list(found)


def _uses(side: Side, names: Collection[str]) -> Iterator[tuple[int, frozenset[str], list[int]]]:
    """The steps that take parameters beside other values: which, and these values."""
    held = list[frozenset[str]]()  # the parameters that a value is made of, where of nothing else
    for index, value in enumerate(side.values):
        if value.call < 0:
            held.append(frozenset({value.name} if value.name in names else ()))
            continue
        taken = frozenset().union(*(held[i] for i in value.inputs))
        others = [i for i in value.inputs if side.fed[i] and not held[i]]
        held.append(frozenset() if others else taken)
        if others and taken:
            yield index, taken, others


def _wanted(probe: Probe, mine: Side, theirs: Side) -> dict[str, set[str]]:
    """For each parameter what the reference's steps hold that take a value which it meets."""
    assert probe.reference is not None
    met: dict[tuple[str, ...], set[str]] = {}
    for _, taken, others in _uses(theirs, probe.reference.weights.keys()):
        for i in others:
            met.setdefault(_rounded(theirs.prints[i]), set()).update(taken)
    found: dict[str, set[str]] = {}
    own = {v.name for v in mine.values if v.name} - {i.name for i in probe.contract.inputs}
    for _, taken, others in _uses(mine, own):
        holds = set().union(*(met.get(_rounded(mine.prints[i]), ()) for i in others))
        for name in taken if holds else ():
            found.setdefault(name, set()).update(holds)
    return found


def _rounded(prints: Tensor) -> tuple[str, ...]:
    return tuple(f"{number:.5g}" for number in prints.tolist())


def _turned_alone(entries: Mapping[str, str]) -> int:
    """How many stacks of layers are held the other way round than most are."""
    turned = [said.startswith("permute") for said in entries.values() if "stack(" in said]
    return min(sum(turned), len(turned) - sum(turned))


def _is_odd(op: str, said: str) -> bool:
    """Whether a matrix is held the other way round than its use says: F.linear takes it as a layer
    of the reference has it, and what is multiplied from the right is transposed."""
    turned = said.startswith("t(")
    return bool(said) and (turned if op == "linear" else "matmul" in op and not turned)
