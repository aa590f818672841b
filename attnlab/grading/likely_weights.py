"""Load the reference's weights into a module that may be wrong, so that no map of them is proven.

The likeliest map by names and shapes is changed where values go wrong: what a step holds that takes
right values and gives a wrong one is likely not what it should hold. A map is better the more
values of the two are equal; what the right steps hold is kept.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from torch import Tensor

from attnlab.diagnosis.pairing import Pairing, Side
from attnlab.probe.answers import Inputs
from attnlab.probe.probe import Probe
from attnlab.probe.weights.match import LikelyMaps

MOST = 40  # maps that are tried
SECONDS = 4.0  # of CPU
SUSPECTS = 4  # parameters of which another content is tried, after each better map


class Tried(NamedTuple):
    """A map with the parameters that it makes, and how it went."""

    weights: dict[str, Tensor]
    entries: dict[str, str]
    wrong: tuple[int, int]  # values of either side without a counterpart; unusual matrices
    right_names: frozenset[str]  # of parameters that only right steps hold
    suspects: tuple[str, ...]  # that wrong ones hold, the first step first


def load_likely_weights(probe: Probe) -> dict[str, str] | None:
    """The map with which most values are equal, once it is loaded; None where names and shapes
    allow none."""
    inputs = probe.draw("none")
    maps = LikelyMaps(probe.match_context(inputs), probe.sizes)
    begun, known = time.process_time(), list[Tried]()
    assert probe.reference is not None
    theirs = Side(probe.reference.values(inputs))  # with the weights that the maps have
    best: Tried | None = None
    banned: set[tuple[str, str]] = set()
    fixed: dict[str, str] = {}
    left = [""]  # parameters to change; first of all none
    while left and len(known) < MOST and time.process_time() - begun < SECONDS:
        name = left.pop(0)
        if best and name:
            banned.add((name, best.entries[name]))
        tried = list[Tried]()
        for weights, entries in maps.cheapest(fixed, banned):
            same = next((each for each in known if each.entries == entries), None)
            tried.append(same or _try(probe, theirs, inputs, weights, entries))
            known += [] if same else tried[-1:]
        better = min(tried, key=lambda each: each.wrong, default=None)
        if better and (best is None or better.wrong < best.wrong):
            best = better
            fixed = {n: said for n, said in best.entries.items() if n in best.right_names}
            left = [n for n in best.suspects if n in maps.names][:SUSPECTS]
            banned.clear()
        elif better and name and (name, better.entries[name]) not in banned:
            banned.add((name, better.entries[name]))  # what else it may hold is tried next
            left.insert(0, name)
        else:
            banned = {pair for pair in banned if pair[0] != name}
    if best is None:
        return None
    probe.set_parameters(best.weights)
    return best.entries


def _try(
    probe: Probe, theirs: Side, inputs: Inputs, weights: dict[str, Tensor], entries: dict[str, str]
) -> Tried:
    probe.set_parameters(weights)
    mine = Side(probe.values(inputs, {}))
    pairs = Pairing(mine, theirs)
    wrong, right_names = set(pairs.wrong), set[str]()
    suspects, odd = dict[str, None](), 0
    held = list[frozenset[str]]()  # the parameters that a value is made of, where of nothing else
    for index, value in enumerate(mine.values):
        if value.call < 0:
            own = {value.name} if value.name in weights else set()
            held.append(frozenset(own))
            continue
        odd += sum(_is_odd(value.op, entries.get(mine.values[i].name, "")) for i in value.inputs)
        taken = frozenset().union(*(held[i] for i in value.inputs))
        only = all(held[i] or not mine.fed[i] for i in value.inputs)
        held.append(taken if only else frozenset())
        if only or not taken:
            continue
        if index in wrong:
            suspects.update(dict.fromkeys(sorted(taken)))
        else:
            right_names |= taken
    # What right steps hold as well comes last: a part of it may be wrong.
    doubted = sorted(suspects, key=right_names.__contains__)
    count = len(wrong) + len(pairs.unclaimed), odd
    return Tried(weights, entries, count, frozenset(right_names.difference(suspects)), (*doubted,))


def _is_odd(op: str, said: str) -> bool:
    """Whether a matrix is held the other way round than its use says: F.linear takes it as a layer
    of the reference has it, and what is multiplied from the right is transposed."""
    turned = said.startswith("t(")
    return bool(said) and (turned if op == "linear" else "matmul" in op and not turned)
