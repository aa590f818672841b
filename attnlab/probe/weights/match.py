"""The reference's weights in a module that names or lays out its parameters in its own way.

    same names -> a declared map -> a map that is found and proven -> "cannot compare"

A map is found by names, shapes and roles, and proven by equality: the weights are put in that way,
the output is compared with the reference's, and what is equal must stay equal for fresh weights and
fresh inputs. Without a proven map nothing is said of values: the module may be right.
"""

from __future__ import annotations

import heapq
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from torch import Tensor

from attnlab.candidate.host import Host, Raised, answered
from attnlab.catalogue.weight_expressions import Misfit
from attnlab.probe.answers import Inputs
from attnlab.probe.inputs import draw
from attnlab.probe.inputs.draw import Dice
from attnlab.probe.inputs.sizes import rounds
from attnlab.probe.reference import Reference
from attnlab.probe.weights.layouts import (
    Places,
    Shapes,
    carried,
    carried_gradients,
    numbered,
    placed,
    places,
)
from attnlab.probe.weights.roles import Option, layer, options, pieces, slots
from attnlab.records import Contract, record
from attnlab.sizes import Sizes, built

# Ways of putting the weights in, of which a call each is made: at telling sizes, then at the
# example's, which may be all that a module was written for.
TRIALS = (150, 20)
SECONDS = 4.0
STEPS = 20_000  # of the search for ways that use every weight once
PROOFS = 3  # draws of weights and inputs that a map must hold for
EQUAL = 1e-3  # of the largest output: another map is off by as much as the output itself
PARAMETERS = 400  # of more, no map is searched


@record
class Fit:
    """A proven map by the module's parameters, or why there is none."""

    entries: dict[str, str] | None = None
    why: str = ""
    tried: int = 0


@dataclass
class Desk:
    """What a search works with."""

    host: Host
    name: str | None
    reference: Reference
    contract: Contract
    dice: Dice
    given: Sequence[Inputs] = ()  # to be called with as soon as the weights are in
    bias: bool = True  # or biases are zero


def find(desk: Desk) -> Fit:
    """The first map that is proven, at sizes that tell axes apart and else at the example's."""
    found: list[Fit] = []
    for sizes, most in zip(_telling(desk.contract), TRIALS, strict=False):
        try:
            found.append(_search(Trial(desk, sizes), most))
        except Raised as error:  # the checks will say it better
            found.append(Fit(why=f"it raised {error}"))
        if found[-1].entries is not None:
            return found[-1]
    return max(found, key=lambda fit: fit.tried)


def _telling(contract: Contract) -> list[Sizes]:
    """Pairwise different sizes first; with B or S = 1 too much is equal by accident."""
    found = rounds(contract, random.Random(0))
    return [found[1], found[0]] if contract.vary and len(found) > 1 else found[:1]


class Trial:
    """The module and the reference at one set of sizes, and the question whether a map is right."""

    def __init__(self, desk: Desk, sizes: Sizes) -> None:
        self.desk, self.sizes = desk, sizes
        self.init = built(desk.contract.init, sizes)
        answered(desk.host.ask("build", name=desk.name, init=self.init, seed=0))
        self.mine = _parameters(desk.host)
        self.weights: dict[str, Tensor] = {}
        self.inputs: Inputs = {}
        self.draw()
        self.known: dict[str, Tensor | int] = {**sizes, **numbered(self.theirs)}

    def draw(self) -> None:
        """Fresh weights and inputs; without a mask, which may be what is wrong."""
        desk = self.desk
        self.weights = desk.reference.equip(self.init, desk.dice)
        self.inputs = draw.inputs(desk.contract, self.sizes, desk.dice, "none")
        self.expected = desk.reference.call(self.inputs)

    @property
    def theirs(self) -> Shapes:
        return shapes_of(self.weights)

    def places(self, entries: Mapping[str, str]) -> Places:
        """A way from `_ways`, which uses every piece of the reference once."""
        return placed(entries, self.mine, self.known)

    def equal(self, at: Places) -> bool:
        """The output with the weights put in this way is the reference's."""
        host = self.desk.host
        answered(host.ask("set_parameters", tensors=carried(self.weights, at)))
        out = answered(host.ask("call", inputs=list(self.inputs.items()))).get("output")
        if not isinstance(out, Tensor) or out.shape != self.expected.shape or out.is_complex():
            return False
        largest = max(1.0, self.expected.abs().max().item()) if out.numel() else 0.0
        gap: Any = (out.double() - self.expected).abs()
        return bool((gap <= EQUAL * largest).all().item()) and out.numel() > 0

    def proven(self, at: Places) -> bool:
        """Equal for several weights and inputs."""
        for _ in range(PROOFS):
            if not self.equal(at):
                return False
            self.draw()
        return True


def _search(trial: Trial, most: int) -> Fit:
    impossible = _impossible(trial)
    if impossible:
        return Fit(why=impossible)
    until = time.monotonic() + SECONDS
    tried = 0
    for entries in _ways(trial):
        try:
            at = trial.places(entries)
        except Misfit:
            continue
        if trial.proven(at):
            return Fit(entries=entries)
        tried += 1
        if tried >= most or time.monotonic() > until:
            break
    return Fit(why=_nothing(tried), tried=tried)


def _nothing(tried: int) -> str:
    if not tried:
        return "names and shapes of its parameters allow no way to put them in"
    ways, gave = (
        ("the one way", "did not give") if tried == 1 else (f"none of the {tried} ways", "gave")
    )
    told = f"{ways} of putting them in that names and shapes allow {gave} its output"
    return f"{told}, so it may compute something else"


def _impossible(trial: Trial) -> str:
    mine, theirs = (_count(s) for s in (trial.mine, trial.theirs))
    if mine != theirs:
        have = "1 number" if mine == 1 else f"{mine} numbers"
        return f"it has {have} in its parameters, the reference {theirs} at the same sizes"
    if len(trial.mine) > PARAMETERS:
        return f"it has {len(trial.mine)} parameters, too many to search for their places"
    return ""


def _count(shapes: Shapes) -> int:
    total = 0
    for shape in shapes.values():
        count = 1
        for size in shape:
            count *= size
        total += count
    return total


def _ways(trial: Trial) -> Iterator[dict[str, str]]:
    """Maps that use every piece of the reference once, the least far-fetched first."""
    parts = pieces(trial.theirs)
    open_slots = slots(trial.mine, trial.sizes)
    choices = {s.name: options(s, parts, trial.sizes) for s in open_slots}
    if not all(choices.values()):
        return
    fewest: dict[str, int] = {}  # of a layer: a weight and its bias are chosen in one go
    for name, slot in choices.items():
        stem = layer(name) or name
        fewest[stem] = min(len(slot), fewest.get(stem, len(slot)))
    names = sorted(choices, key=lambda name: (fewest[layer(name) or name], layer(name)))
    for chosen in _cheapest([(layer(n), choices[n]) for n in names], len(parts)):
        yield {n: o.expression for n, o in zip(names, chosen, strict=True)}


def _cheapest(choices: list[tuple[str, list[Option]]], count: int) -> Iterator[tuple[Option, ...]]:
    """One option for each slot, no piece twice and none left, in the order of their cost."""
    rest = [0.0]  # what the slots after this one cost at least
    for _, slot in reversed(choices):
        rest.insert(0, rest[0] + slot[0].cost)
    heap: list[tuple[float, int, int, tuple[Option, ...]]] = [(rest[0], 0, 0, ())]
    made = 0
    while heap and made < STEPS:
        cost, _, _, chosen = heapq.heappop(heap)
        at = len(chosen)
        used = frozenset().union(*(o.pieces for o in chosen))
        if at == len(choices):
            if len(used) == count:
                yield chosen
            continue
        own, open_options = choices[at]
        sibling = next(
            (o for o, (n, _) in zip(chosen, choices, strict=False) if own and n == own), None
        )
        for option in open_options:
            if not used & option.pieces and _together(option, sibling):
                made += 1
                total = cost - rest[at] + option.cost + rest[at + 1]
                heapq.heappush(heap, (total, -at, made, (*chosen, option)))


def _together(option: Option, sibling: Option | None) -> bool:
    """A layer's weight and bias come from the same layer of the reference."""
    known = sibling is not None and sibling.layers and option.layers
    return not known or (sibling is not None and sibling.layers == option.layers)


# ---------------------------------------------------------------- every round


class Equipped(NamedTuple):
    """How the weights of a round went in."""

    refusal: str = ""  # why they did not
    at: Places | None = None  # by which map, where names differ
    theirs: Shapes = {}  # noqa: RUF012  never written to
    told: dict[str, Any] = {}  # noqa: RUF012  with "answers" to the calls that were to be made

    def gradients(self, found: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """The reference's gradients by the module's own parameters."""
        return found if self.at is None else carried_gradients(found, self.at, self.theirs)


class Outfitter:
    """Builds module and reference for a round and gives both the same weights.

    A map is searched once for a job, at the first round at which names or shapes do not fit.
    """

    def __init__(self) -> None:
        self.fit: Fit | None = None

    def equip(self, desk: Desk, sizes: Sizes) -> Equipped:
        weights, told = _build(desk, sizes)
        refusal = misfit(told)
        if not refusal:
            return Equipped(told=told)
        if desk.contract.weights:
            done = _by_map(desk, sizes, desk.contract.weights, weights)
            if not done.refusal:
                return done
            refusal = done.refusal
        if self.fit is None:
            self.fit = Fit(why="the search for their places ended with the module's process")
            self.fit = find(desk)
            weights, _ = _build(desk, sizes)
        if self.fit.entries is None:
            return Equipped(f"{refusal}; {self.fit.why}")
        return _by_map(desk, sizes, self.fit.entries, weights)


def _build(desk: Desk, sizes: Sizes) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Both at these sizes; the reference's weights, and what became of them by their names."""
    init = built(desk.contract.init, sizes)
    seed = desk.dice.plain.getrandbits(32)
    weights = desk.reference.equip(init, desk.dice, desk.bias)
    asked = {"name": desk.name, "init": init, "seed": seed, "put": weights}
    given = [list(inputs.items()) for inputs in desk.given]
    return weights, answered(desk.host.ask("build", **asked, inputs=given))


def _by_map(
    desk: Desk, sizes: Sizes, entries: Mapping[str, str], weights: dict[str, Tensor]
) -> Equipped:
    theirs = shapes_of(weights)
    try:
        at = places(entries, _parameters(desk.host), theirs, sizes)
    except Misfit as reason:
        return Equipped(f"the reference's weights do not go in at these sizes: {reason}")
    refusal = misfit(answered(desk.host.ask("set_parameters", tensors=carried(weights, at))))
    return Equipped(refusal, at, theirs)


def _parameters(host: Host) -> Shapes:
    told = answered(host.ask("parameters")).get("tensors")
    return shapes_of(told) if isinstance(told, dict) else {}


def shapes_of(tensors: Mapping[str, Tensor]) -> Shapes:
    return {str(n): tuple(t.shape) for n, t in tensors.items() if isinstance(t, Tensor)}


def misfit(told: dict[str, Any]) -> str:
    """Why the reference's weights do not go in, or "" when they do."""
    missing, extra, shapes = (told.get(k) for k in ("missing", "extra", "shapes"))
    if isinstance(missing, list) and missing:
        have = f"; it has {_some(extra)}" if isinstance(extra, list) and extra else ""
        return (
            f"the module has no parameter {_some(missing)}, "
            f"so the reference's weights have no place{have}"
        )
    if isinstance(shapes, dict) and shapes:
        name, pair = next(iter(shapes.items()))
        good = isinstance(pair, list) and len(pair) == 2 and all(isinstance(p, list) for p in pair)
        mine, theirs = map(tuple, pair) if good else ("another", "is not told")
        return f"parameter {name} has shape {mine}, the reference's {theirs}"
    if isinstance(extra, list) and extra:
        return f"the module has parameters that the reference does not have: {_some(extra)}"
    return ""


def _some(names: list[Any]) -> str:
    shown = ", ".join(str(n) for n in names[:4])
    return shown + (f" and {len(names) - 4} more" if len(names) > 4 else "")
