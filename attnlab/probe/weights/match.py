"""Load the reference's weights into a module that names or lays out its parameters differently.

    same names -> a declared map -> a map that is found and proven -> "cannot compare"

A map is proposed from names, shapes and roles, and proven by values: with the weights loaded that
way the output must equal the reference's, again and again for fresh weights and inputs. Without a
proven map no value is compared, because the module may be right.
"""

import heapq
import random
import re
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice, zip_longest
from typing import Any, NamedTuple

import torch
from torch import Tensor

from attnlab.candidate.host import Host, Raised, checked_answer
from attnlab.catalogue.weight_expressions import Misfit
from attnlab.probe.answers import Inputs
from attnlab.probe.inputs import draw
from attnlab.probe.inputs.draw import Dice
from attnlab.probe.inputs.sizes import rounds
from attnlab.probe.reference import NotOneTensor, Reference
from attnlab.probe.weights.cover import cover
from attnlab.probe.weights.cut_layers import with_cuts
from attnlab.probe.weights.layouts import (
    Indices,
    Shapes,
    element_indices,
    evaluate_map,
    map_gradients,
    map_weights,
    weight_indices,
)
from attnlab.probe.weights.roles import (
    Option,
    Slot,
    all_options,
    layer_name,
    pieces,
    slots,
    without_lost_letters,
)
from attnlab.probe.weights.tied_layers import TiedLayers, tie_layers
from attnlab.records import Contract, record
from attnlab.sizes import Sizes, constructor_arguments

# Maps that are tried, with one call each: at sizes that tell axes apart, then at the example's,
# which may be all that a module was written for.
TRIALS = (150, 20)
SECONDS = 4.0
STEPS = 20_000  # of the search for maps that use every weight once
PROOFS = 3  # draws of weights and inputs that a map must hold for
TOLERANCE = 1e-3  # of the largest output: a wrong map is off by as much as the output itself
UNWANTED = 5.0  # the cost of what values speak against
MANY = 24  # parameters; of more, one map is made at once, before all in the order of their cost
CUTS = 4  # ways to cut layers, with which others are joined
WIDE = 120  # contents of all parameters; of more, as well
LENGTHS = {"B", "S", "T", "L"}  # sizes that no parameter has
SEVERAL = 100  # parameters, for which all ways are looked at
PARAMETERS = 400  # with more, no map is searched


@record
class WeightMap:
    """A proven map by the module's parameters, or why there is none."""

    entries: dict[str, str] | None = None
    reason: str = ""
    tried: int = 0


Choices = dict[object, list[tuple[TiedLayers, int]]]


@dataclass
class MatchContext:
    """The two sides of a match: the module, in its process, and the reference."""

    host: Host
    name: str | None
    reference: Reference
    contract: Contract
    dice: Dice
    calls: Sequence[Inputs] = ()  # to be made as soon as the weights are loaded
    bias: bool = True  # or biases are zero
    choices: Choices = field(default_factory=dict)  # by shapes and sizes, to be found once


def find_map(context: MatchContext) -> WeightMap:
    """The first map that is proven, at sizes that tell axes apart, else at the example's."""
    found: list[WeightMap] = []
    for sizes, most in zip(_search_sizes(context.contract), TRIALS, strict=False):
        try:
            found.append(_search(Trial(context, sizes), most))
        except Raised as error:  # the checks report it better
            found.append(WeightMap(reason=f"it raised {error}"))
        except NotOneTensor as error:  # but several, by which no map is proven
            found.append(WeightMap(reason=str(error)))
        if found[-1].entries is not None:
            return found[-1]
    return max(found, key=lambda result: result.tried)


def _search_sizes(contract: Contract) -> list[Sizes]:
    """Pairwise different sizes first; with B or S = 1 too much is equal by accident."""
    drawn = rounds(contract, random.Random(0))
    return [drawn[1], drawn[0]] if contract.vary and len(drawn) > 1 else drawn[:1]


class LikelyMaps:
    """The maps that names and shapes allow at one set of sizes. None of them is proven."""

    def __init__(self, context: MatchContext, sizes: Sizes) -> None:
        self.trial = Trial(context, sizes)

    @cached_property
    def choices(self) -> list[tuple[TiedLayers, int]]:
        return [] if _size_mismatch(self.trial) else _choices(self.trial)

    def made_by(self, entries: Mapping[str, str]) -> dict[str, Tensor] | None:
        """The parameters that a map makes; None where it does not fit."""
        try:
            indices = evaluate_map(entries, self.trial.shapes, self.trial.known)
        except Misfit:
            return None
        return map_weights(self.trial.weights, indices)

    @property
    def names(self) -> set[str]:
        """The parameters that maps choose for: of layers that are alike, those of the first."""
        return {name for tied, _ in self.choices for name in tied.choices}

    def cheapest(
        self,
        fixed: Mapping[str, str],
        banned: Collection[tuple[str, str]],
        wanted: Mapping[str, set[str]],
    ) -> Iterator[tuple[dict[str, Tensor], dict[str, str]]]:
        """The likeliest map of each way to store matrices, with the parameters that it makes: with
        what is `fixed` for some parameters, none of what is banned, and rather parameters of the
        reference that are `wanted`."""
        for tied, count in list(self.choices):
            left = {
                name: self._rather(
                    [
                        o
                        for o in options
                        if (name, o.expression) not in banned
                        and fixed.get(name, o.expression) == o.expression
                    ],
                    wanted.get(name, set()),
                )
                for name, options in tied.choices.items()
            }
            found = list(islice(_maps_of(tied._replace(choices=left), count), 1))
            if not (found or fixed or banned or wanted):
                self.choices = [each for each in self.choices if each[0] is not tied]
            for entries in found:
                made = self.made_by(entries)
                if made is not None:
                    yield made, dict(entries)

    def _rather(self, options: list[Option], wanted: set[str]) -> list[Option]:
        """The options, those of other parameters than the wanted ones at a higher cost."""
        if not wanted:
            return options
        costs = [
            o._replace(cost=o.cost + UNWANTED * (not self._made_of(o.expression) <= wanted))
            for o in options
        ]
        return sorted(costs, key=lambda o: o.cost)

    def _made_of(self, expression: str) -> set[str]:
        return self.trial.reference_shapes.keys() & set(re.findall(r"[\w.]+", expression))


class Trial:
    """The module and the reference at one set of sizes, to try maps on."""

    def __init__(self, context: MatchContext, sizes: Sizes) -> None:
        self.context, self.sizes = context, sizes
        self.init = constructor_arguments(context.contract.init, sizes)
        checked_answer(context.host.ask("build", name=context.name, init=self.init, seed=0))
        self.shapes = _parameter_shapes(context.host)
        self.weights: dict[str, Tensor] = {}
        self.inputs: Inputs = {}
        self._expected: Tensor | None = None
        self.draw()
        self.reference_shapes = shapes_of(self.weights)
        self.known: dict[str, Tensor | int] = {**sizes, **element_indices(self.reference_shapes)}

    def draw(self) -> None:
        """Draw fresh weights and inputs; without a mask, which may be what is wrong."""
        context = self.context
        self.weights = context.reference.equip(self.init, context.dice)
        self.inputs = draw.inputs(context.contract, self.sizes, context.dice, "none")
        self._expected = None

    @property
    def expected(self) -> Tensor:
        """The reference's output for the inputs; raises `BadReference` where it is no tensor."""
        if self._expected is None:
            self._expected = self.context.reference.call(self.inputs)
        return self._expected

    def matches(self, indices: Indices) -> bool:
        """Whether the output equals the reference's with the weights loaded this way."""
        host = self.context.host
        checked_answer(host.ask("set_parameters", tensors=map_weights(self.weights, indices)))
        out = checked_answer(host.ask("call", inputs=list(self.inputs.items()))).get("output")
        if not isinstance(out, Tensor) or out.shape != self.expected.shape or out.is_complex():
            return False
        largest = max(1.0, self.expected.abs().max().item()) if out.numel() else 0.0
        gap: Any = (out.double() - self.expected).abs()
        return bool((gap <= TOLERANCE * largest).all().item()) and out.numel() > 0

    def is_proven(self, indices: Indices) -> bool:
        """Whether the outputs are equal for several weights and inputs."""
        for _ in range(PROOFS):
            if not self.matches(indices):
                return False
            self.draw()
        return True


def _search(trial: Trial, most: int) -> WeightMap:
    if reason := _size_mismatch(trial):
        return WeightMap(reason=reason)
    until = time.monotonic() + SECONDS
    tried = 0
    for entries in _maps(trial):
        try:
            indices = evaluate_map(entries, trial.shapes, trial.known)

        except Misfit:
            continue
        if trial.is_proven(indices):
            return WeightMap(entries=entries)
        tried += 1
        if tried >= most or time.monotonic() > until:
            break
    return WeightMap(reason=_failure(tried), tried=tried)


def _failure(tried: int) -> str:
    if not tried:
        return "by their names and shapes its parameters cannot hold the reference's weights"
    ways = "the one possible way" if tried == 1 else f"none of the {tried} likely ways"
    gave = "did not give" if tried == 1 else "gave"
    return (
        f"{ways} to load the weights {gave} the reference's output, "
        "so the module may compute something else"
    )


def _size_mismatch(trial: Trial) -> str:
    mine, theirs = _count(trial.shapes), _count(trial.reference_shapes)
    if mine != theirs:
        have = "1 number" if mine == 1 else f"{mine} numbers"
        return f"it has {have} in its parameters, the reference {theirs} at the same sizes"
    if len(trial.shapes) > PARAMETERS:
        return f"it has {len(trial.shapes)} parameters, too many to search for a map"
    return ""


def _count(shapes: Shapes) -> int:
    return sum(torch.Size(shape).numel() for shape in shapes.values())


def _maps(trial: Trial) -> Iterator[dict[str, str]]:
    """Maps that use every piece of the reference once, the likely ones first."""
    seen: list[dict[str, str]] = []
    for together in zip_longest(*(_maps_of(*choices) for choices in _choices(trial))):
        for entries in together:
            if entries is not None and entries not in seen:
                seen.append(entries)
                yield entries


def _choices(trial: Trial) -> list[tuple[TiedLayers, int]]:
    """What each parameter may hold, and of how many pieces all hold one: where matrices that no
    layer owns are stored transposed, and where they are as layers store theirs; where fused ones
    have one block for each head; where two hold one layer. That one holds layers of a list comes
    last."""
    known = trial.context.choices
    sizes = {s: n for s, n in trial.sizes.items() if s not in LENGTHS}
    key = (*trial.shapes.items(), None, *trial.reference_shapes.items(), None, *sizes.items())
    if key not in known:
        families = slots(trial.shapes, sizes)
        each_alone = slots(trial.shapes, {})  # as many layers in a list as heads
        known[key] = _choices_for(trial, families, sizes)
        if families != each_alone:
            known[key] = [*_choices_for(trial, each_alone, sizes), *known[key]]
    return known[key]


def _choices_for(
    trial: Trial, places: tuple[Slot, ...], sizes: Sizes
) -> list[tuple[TiedLayers, int]]:
    parts = without_lost_letters(pieces(trial.reference_shapes), places, sizes)
    by_head = pieces(trial.reference_shapes, sizes, "H")
    by_head = without_lost_letters(by_head, places, sizes)
    as_layers = tuple(s._replace(parsed=s.parsed._replace(raw=False)) for s in places)
    small = len(places) <= SEVERAL
    both = list(dict.fromkeys((places, as_layers if small else places)))
    found = list[tuple[TiedLayers, int]]()
    whole = [parts, *([by_head] if by_head != parts else ())]
    cuts = [cut for each in whole for cut in with_cuts(each, places, sizes)]
    ways = [(0, each) for each in (*whole, *cuts)]
    several = [(1, parts), *((2, each) for each in (parts, *cuts[:CUTS]))] if small else []
    for lists, held in (*ways, *several):
        options = (all_options(each, held, sizes, lists) for each in both)
        found += [(tie_layers(each, held), len(held)) for each in options]
    return found


def _maps_of(tied: TiedLayers, count: int) -> Iterator[dict[str, str]]:
    """The maps that use all of so many pieces, in the order of their cost; of many parameters one
    that is found at once comes first."""
    choices = tied.choices
    if not all(choices.values()):
        return
    fewest: dict[str, int] = {}  # options of a layer: its weight and bias are chosen together
    for name, slot_options in choices.items():
        layer = layer_name(name) or name
        fewest[layer] = min(len(slot_options), fewest.get(layer, len(slot_options)))
    names = sorted(choices, key=lambda name: (fewest[layer_name(name) or name], layer_name(name)))
    layers: dict[str, dict[str, list[Option]]] = {}
    for name in names:
        layers.setdefault(layer_name(name) or name, {})[name] = choices[name]
    wide = sum(len(each) for each in choices.values()) > WIDE
    if (len(names) > MANY or wide) and (found := cover(list(layers.values()), count)):
        yield tied.expand({n: o.expression for n, o in found.items()})
    for chosen in _cheapest_choices([(layer_name(n), choices[n]) for n in names], count):
        yield tied.expand({n: o.expression for n, o in zip(names, chosen, strict=True)})


def _cheapest_choices(
    choices: list[tuple[str, list[Option]]], count: int
) -> Iterator[tuple[Option, ...]]:
    """One option for each slot, using all `count` pieces once, in the order of their cost."""
    rest = [0.0]  # what the slots after this one cost at least
    for _, slot_options in reversed(choices):
        rest.insert(0, rest[0] + slot_options[0].cost)
    heap: list[tuple[float, int, int, tuple[Option, ...]]] = [(rest[0], 0, 0, ())]
    pushed = 0
    while heap and pushed < STEPS:
        cost, _, _, chosen = heapq.heappop(heap)
        at = len(chosen)
        used = frozenset().union(*(o.pieces for o in chosen))
        if at == len(choices):
            if len(used) == count:
                yield chosen
            continue
        layer, slot_options = choices[at]
        sibling = next(
            (o for o, (n, _) in zip(chosen, choices, strict=False) if layer and n == layer), None
        )
        for option in slot_options:
            if not used & option.pieces and _from_one_layer(option, sibling):
                pushed += 1
                total = cost - rest[at] + option.cost + rest[at + 1]
                heapq.heappush(heap, (total, -at, pushed, (*chosen, option)))


def _from_one_layer(option: Option, sibling: Option | None) -> bool:
    """Whether a layer's weight and bias come from the same layer of the reference, where known."""
    return not (sibling and sibling.layers and option.layers) or sibling.layers == option.layers


# ---------------------------------------------------------------- every round


class LoadedWeights(NamedTuple):
    """How the weights of a round were loaded."""

    refusal: str = ""  # why they were not
    indices: Indices | None = None  # of each parameter, where names differ
    reference_shapes: Shapes = {}  # noqa: RUF012  never written to
    answer: dict[str, Any] = {}  # noqa: RUF012  of the module's process, with "answers" to `calls`

    def gradients(self, reference: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """The reference's gradients by the module's own parameters."""
        if self.indices is None:
            return reference
        return map_gradients(reference, self.indices, self.reference_shapes)


class WeightMatcher:
    """Builds module and reference for a round and gives both the same weights.

    A map is searched once for a job, in the first round in which names or shapes do not fit."""

    def __init__(self) -> None:
        self.found: WeightMap | None = None
        self.choices: Choices = {}

    def build(self, context: MatchContext, sizes: Sizes) -> LoadedWeights:
        weights, answer = _build(context, sizes)
        refusal = loading_error(answer)
        if not refusal:
            return LoadedWeights(answer=answer)
        if context.contract.weights:
            loaded = _load_by_map(context, sizes, context.contract.weights, weights)
            if not loaded.refusal:
                return loaded
            refusal = loaded.refusal
        if self.found is None:
            self.found = WeightMap(reason="the search for a map ended with the module's process")
            self.found = find_map(context)
            weights, _ = _build(context, sizes)
        if self.found.entries is None:
            return LoadedWeights(f"{refusal}; {self.found.reason}")
        return _load_by_map(context, sizes, self.found.entries, weights)


def _build(context: MatchContext, sizes: Sizes) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Build both at these sizes and load by name; the reference's weights, and the answer."""
    init = constructor_arguments(context.contract.init, sizes)
    seed = context.dice.plain.getrandbits(32)
    weights = context.reference.equip(init, context.dice, context.bias)
    recipe = {"name": context.name, "init": init, "seed": seed, "put": weights}
    calls = [list(inputs.items()) for inputs in context.calls]
    return weights, checked_answer(context.host.ask("build", **recipe, inputs=calls))


def _load_by_map(
    context: MatchContext, sizes: Sizes, entries: Mapping[str, str], weights: dict[str, Tensor]
) -> LoadedWeights:
    shapes = shapes_of(weights)
    try:
        indices = weight_indices(entries, _parameter_shapes(context.host), shapes, sizes)
    except Misfit as reason:
        return LoadedWeights(f"the reference's weights cannot be loaded at these sizes: {reason}")
    tensors = map_weights(weights, indices)
    answer = checked_answer(context.host.ask("set_parameters", tensors=tensors))
    return LoadedWeights(loading_error(answer), indices, shapes)


def _parameter_shapes(host: Host) -> Shapes:
    tensors = checked_answer(host.ask("parameters")).get("tensors")
    return shapes_of(tensors) if isinstance(tensors, dict) else {}


def shapes_of(tensors: Mapping[str, Tensor]) -> Shapes:
    return {str(n): tuple(t.shape) for n, t in tensors.items() if isinstance(t, Tensor)}


def loading_error(answer: dict[str, Any]) -> str:
    """Why the reference's weights were not loaded by name, or "" if they were."""
    missing, extra, shapes = (answer.get(k) for k in ("missing", "extra", "shapes"))
    if isinstance(missing, list) and missing:
        have = f"; it has {_first_names(extra)}" if isinstance(extra, list) and extra else ""
        return f"the module has no parameter {_first_names(missing)}, which the reference has{have}"
    if isinstance(shapes, dict) and shapes:
        name, pair = next(iter(shapes.items()))
        good = isinstance(pair, list) and len(pair) == 2 and all(isinstance(p, list) for p in pair)
        if not good:
            return f"parameter {name} does not have the shape of the reference's"
        return f"parameter {name} has shape {tuple(pair[0])}, the reference's {tuple(pair[1])}"
    if isinstance(extra, list) and extra:
        return f"the module has parameters that the reference does not have: {_first_names(extra)}"
    return ""


def _first_names(names: list[Any]) -> str:
    shown = ", ".join(str(n) for n in names[:4])
    return shown + (f" and {len(names) - 4} more" if len(names) > 4 else "")
