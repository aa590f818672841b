"""Load the reference's weights into a module that may be wrong, so that no map of them is proven.

The likeliest map by names and shapes is changed where values go wrong: a step that takes right
values likely holds what a step of the reference holds that takes the same ones, and what it holds
if it gives a wrong value is likely wrong. A map is better the more values of the two are equal;
what the right steps hold is kept.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from torch import Tensor

from attnlab.diagnosis.pairing import Pairing, Side
from attnlab.probe.answers import Inputs
from attnlab.probe.probe import Probe
from attnlab.probe.weights.match import LikelyMaps

MOST = 40  # maps that are tried
SECONDS = 10.0  # of CPU
SUSPECTS = 4  # parameters of which another content is tried, after each better map; and as many
NEAR = 4  # steps before a wrong one


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
    probe: Probe, guess: Mapping[str, str] | None = None
) -> dict[str, str] | None:
    """The map with which most values are equal, once it is loaded; None where names and shapes
    allow none. The `guess` of other sizes is taken where it fits these."""
    inputs = probe.draw("none")
    maps = LikelyMaps(probe.match_context([inputs]), probe.sizes)
    made = maps.made_by(guess) if guess else None
    if made is not None:
        probe.set_parameters(made)
        return dict(guess or {})
    begun, known = time.process_time(), list[Tried]()
    assert probe.reference is not None
    theirs = Side(probe.reference.values(inputs))  # with the weights that the maps have
    best: Tried | None = None
    banned: dict[str, set[str]] = {}  # what parameters were found not to hold
    fixed: dict[str, str] = {}
    left = [""]  # parameters to change; first of all none
    while left and len(known) < MOST and time.process_time() - begun < SECONDS:
        name, keep = left.pop(0), fixed
        if best and name:
            banned.setdefault(name, {best.entries[name]})
            if name in fixed:  # it may be exchanged with another that is right by accident
                shape = best.weights[name].shape
                keep = {n: e for n, e in fixed.items() if best.weights[n].shape != shape}
        never = {(name, said) for said in banned.get(name, ())}
        tried = list[Tried]()
        for weights, entries in maps.cheapest(keep, never, best.wanted if best else {}):
            same = next((each for each in known if each.entries == entries), None)
            near = best.pairing if best else None
            tried.append(same or _try(probe, theirs, inputs, weights, entries, near))
            known += [] if same else tried[-1:]
        better = min(tried, key=lambda each: each.wrong, default=None)
        if better and (best is None or better.wrong < best.wrong):
            best = better
            fixed = {n: said for n, said in best.entries.items() if n in best.right_names}
            left = ["", *[n for n in best.suspects if n in maps.names]]
            banned.clear()
        elif better and name:
            banned[name].update(each.entries[name] for each in tried)
            left.append(name)  # what else it may hold is tried after the others
    if best is None:
        return None
    probe.set_parameters(best.weights)
    return best.entries


def _try(
    probe: Probe,
    theirs: Side,
    inputs: Inputs,
    weights: dict[str, Tensor],
    entries: dict[str, str],
    near: Pairing | None,
) -> Tried:
    """How a map goes; `near` is the pairing of another, with which most values may be the same."""
    probe.set_parameters(weights)
    mine = Side(probe.values(inputs, {}))
    pairs = Pairing(mine, theirs, near)
    wrong, right_names = set(pairs.wrong), set[str]()
    suspects = dict[str, None]()
    odd = sum(
        _is_odd(value.op, entries.get(mine.values[i].name, ""))
        for value in mine.values
        for i in value.inputs
    )
    uses = {index: taken for index, taken, _ in _uses(mine, weights.keys())}
    for index, taken in uses.items():
        if index in wrong:
            suspects.update(dict.fromkeys(sorted(taken)))
        else:
            right_names |= taken
    # What right steps hold as well comes last: a part of it may be wrong; then what the first wrong
    # step takes from right ones, which may hold each other's.
    doubted = [*sorted(suspects, key=right_names.__contains__)[:SUSPECTS]]
    doubted += [n for n in _before(mine, wrong, uses) if n not in doubted][:SUSPECTS]
    count = len(wrong) + len(pairs.unclaimed), odd
    kept = frozenset(right_names.difference(suspects))
    wanted = _wanted(probe, mine, theirs)
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


def _is_odd(op: str, said: str) -> bool:
    """Whether a matrix is held the other way round than its use says: F.linear takes it as a layer
    of the reference has it, and what is multiplied from the right is transposed."""
    turned = said.startswith("t(")
    return bool(said) and (turned if op == "linear" else "matmul" in op and not turned)
