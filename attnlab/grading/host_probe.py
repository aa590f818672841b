"""The probe: a check's verbs, answered by a host and a reference that share the same weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from attnlab.candidate.host import Host, Raised, answered
from attnlab.checks.base import CannotTell, Gradients, Inputs, Mask, Skip, data_inputs
from attnlab.grading.decode import Odd, output_in, refuse
from attnlab.grading.host_probe_contract import Asking
from attnlab.grading.inputs import draw
from attnlab.grading.inputs.batching import stacked
from attnlab.grading.inputs.cache import EXPLAINING, SampleCache
from attnlab.grading.inputs.draw import Dice
from attnlab.grading.inputs.patterns import USUAL, Manner, mannered
from attnlab.grading.inputs.sizes import within
from attnlab.grading.pacing import LENGTHS, Pacing
from attnlab.grading.reference import Reference, finite
from attnlab.grading.source_calls import Reading
from attnlab.grading.weights.layouts import carried
from attnlab.grading.weights.match import Desk, Equipped, Outfitter
from attnlab.records import Contract, Until, plain
from attnlab.sizes import Sizes, built, measure, with_hd

Weights = Mapping[str, Tensor]
T = TypeVar("T")
SLACK = 64  # matmuls, a softmax and a norm, one after the other, with room


@dataclass
class Bench:
    """What the rounds of one job share."""

    contract: Contract
    name: str | None  # the class to build; None = the only one
    host: Host
    renew: Callable[[], Host]  # a fresh host, after the last one died
    dice: Dice
    reference: Reference | None
    outfitter: Outfitter = field(default_factory=Outfitter)
    text: str = ""  # the candidate's source, to be read and not run
    numbers: tuple[int, ...] = ()  # that it names
    full: bool = False  # also the checks that are made on demand only
    until: Until = "end"
    only: frozenset[str] = frozenset()  # the checks to make; none named = all
    pace: float | None = None  # seconds for a pair of positions in a head, once it is known
    wrote: tuple[str, Sizes] | None = None  # the argument that a call wrote into, at which sizes


class HostProbe(Asking, Pacing, Reading):
    """One round: one set of sizes, one freshly built module, one set of weights."""

    def __init__(
        self,
        bench: Bench,
        sizes: Sizes,
        dtype: str = "float32",
        thorough: bool = True,
        manner: Manner = USUAL,
    ) -> None:
        self.bench = bench
        self.manner = manner
        self.thorough = thorough
        self.confirming = False  # True where values are right: what follows is to confirm
        self.pool = SampleCache(self)
        self.compared = bench.reference is not None
        self.contract = bench.contract
        self.sizes = sizes
        self.host = bench.host
        self.dice = bench.dice
        self.reference = bench.reference
        self.strict = False  # True once output-shape has passed: the shape must not change again
        self.equipped = Equipped()
        self.dtype = dtype
        self.fall: Raised | None = None  # of the first call of all
        self.shapes: dict[tuple[torch.Size, ...], tuple[int, ...]] = {}  # of outputs, by inputs
        self.latest = self  # the probe that was asked last: one that `at` made, or this one
        self.away = False  # whether the host has that one's module
        self.seed = self.dice.plain.getrandbits(32)  # of instances that are to be alike

    def equip(self) -> None:
        """Build the module and give it the reference's weights, where they fit."""
        if self.contract.cache:
            answered(self.host.ask("declare_cache", **plain(self.contract.cache)))
        self.pool, self.away = SampleCache(self), False
        if self.reference is not None:
            drawn = self.pool.usual()
            given = list(drawn.values())
            bench, bias = self.bench, self.manner.bias
            desk = Desk(
                self.host, bench.name, self.reference, self.contract, self.dice, given, bias
            )
            self.equipped = equipped = self.bench.outfitter.equip(desk, self.sizes)
            if "answers" in equipped.told:
                self.pool.fetch(drawn, lambda: self.outputs(equipped.told, given))
            fell = equipped.told.get("fell")
            self.fall = Raised({"verb": "call", **fell}) if isinstance(fell, dict) else None
        else:
            self._build(self.sizes)
        self.latest = self

    def recipe(self) -> dict[str, Any]:
        init = built(self.contract.init, self.sizes)
        return {"name": self.bench.name, "init": init, "seed": self.dice.plain.getrandbits(32)}

    def variant(
        self, sizes: Mapping[str, int] | None = None, dtype: str = "float32", anew: bool = False
    ) -> HostProbe:
        self.back()
        wanted = {**self.sizes, **(sizes or {})}
        if "hd" not in self.contract.sizes:
            wanted.pop("hd", None)  # it was D / H, and these may be others
        other = HostProbe(self.bench, with_hd(wanted), dtype, thorough=False)
        other.reference, other.strict, self.latest = None, self.strict, other
        recipe = other.recipe()
        same = recipe["init"] == self.recipe()["init"]
        if same and dtype == self.dtype:  # other sizes need no other module
            return other
        self.away = True
        if (
            same
            and not anew
            and not answered(self.host.ask("cast_twin", dtype=dtype)).get("failed")
        ):
            return other
        weights = self.parameters()
        answered(self.host.ask("put_aside"))
        answered(self.host.ask("build", **recipe))
        if not same:
            weights = draw.weights({n: p.shape for n, p in other.parameters().items()}, self.dice)
        other.set_parameters(weights)
        if dtype != self.dtype:  # or tables in float64 and in complex numbers would be cast, too
            answered(self.host.ask("cast", dtype=dtype))
        return other

    def initial_parameters(self) -> Mapping[str, Tensor]:
        self.back()
        self.latest, self.away = HostProbe(self.bench, self.sizes), True
        answered(self.host.ask("put_aside"))
        answered(self.host.ask("build", **self.recipe()))
        return self.parameters()

    def back(self) -> None:
        """The module of this probe again, after `at`."""
        self.latest = self
        if self.away:
            self.away = False
            answered(self.host.ask("take_back"))

    def given_parameters(self) -> Mapping[str, Tensor] | None:
        if self.bench.reference is None or self.equipped.refusal:
            return None
        return self._placed(self.bench.reference.weights)

    def _build(self, sizes: Sizes, weights: Weights | None = None) -> None:
        init, seed = built(self.contract.init, sizes), self.dice.plain.getrandbits(32)
        put = dict(weights) if weights is not None else None
        answered(self.host.ask("build", name=self.bench.name, init=init, seed=seed, put=put))

    # ------------------------------------------------------------ drawing

    def draw(
        self, mask: Mask = "random", scale: float = 1.0, longer: int = 0, alone: bool = False
    ) -> Inputs:
        sizes = self.sizes
        if alone and "B" in self.contract.vary and "B" in sizes:
            sizes = {**sizes, "B": 1}
        lengths = [s for s in LENGTHS if s in self.contract.vary and s in sizes]
        if longer and lengths:
            sizes = within({**sizes, **{s: max(sizes[s] + longer, 1) for s in lengths}})
        open_mask = self.manner.open and mask == "none"
        drawn = draw.inputs(self.contract, sizes, self.dice, "open" if open_mask else mask, scale)
        if self.manner is not USUAL:
            drawn = mannered(self.manner, self.contract, drawn, self.dice, mask)
        dtype = getattr(torch, self.dtype)
        return {
            n: t.to(dtype) if t is not None and t.is_floating_point() else t
            for n, t in drawn.items()
        }

    @property
    def inputs_description(self) -> str:
        masked = any(i.role == "mask" for i in self.contract.inputs)
        return self.manner.said(masked, bool(self.reference and self.reference.weights))

    def noise(self, like: Tensor, scale: float = 1.0) -> Tensor:
        if like.dtype is torch.bool:
            return self.dice.chance(tuple(like.shape), 0.5)
        if not like.is_floating_point():
            return self.dice.integers(like.shape, self.sizes.get("V", 16))
        return self.dice.normal(like.shape, scale).to(like.dtype)

    def choose_ways(self, ways: Sequence[T]) -> list[T]:
        return [self.dice.plain.choice(ways)] if self.confirming and ways else list(ways)

    def random_integer(self, low: int, high: int) -> int:
        return self.dice.plain.randrange(low, high)

    # ------------------------------------------------------------ asking

    def sample(self, mask: Mask = "random", scale: float = 1.0) -> tuple[Inputs, Tensor]:
        if self.fall:
            raise self.fall
        inputs, out = self.pool.sample(mask, scale)
        self._same_shape(out, inputs)
        return inputs, out

    def prefetch(self) -> None:
        """Have what explains a wrong value or confirms a right one in one go."""
        self.pool.fetch(self.pool.usual(EXPLAINING))

    def gradient_sample(self, mask: Mask = "random") -> tuple[Inputs, Gradients]:
        return self.pool.gradient_sample(mask)

    def call(self, inputs: Inputs, train: bool = False) -> Tensor:
        answer = answered(self.host.ask("call", inputs=list(inputs.items()), train=train))
        return self.output(answer, inputs)

    def calls(
        self, several: Sequence[Inputs], train: bool | Sequence[bool] = False
    ) -> list[Tensor]:
        asked = [list(inputs.items()) for inputs in several]
        return self.outputs(answered(self.host.ask("calls", inputs=asked, train=train)), several)

    def with_weights(
        self, several: Sequence[tuple[Weights, Inputs]], back: Weights, own: bool = False
    ) -> list[Tensor]:
        weights = [self._placed(lent, own) for lent, _ in several]
        given = [inputs for _, inputs in several]
        asked = [list(inputs.items()) for inputs in given]
        placed = self._placed(back, own)
        told = answered(self.host.ask("with_weights", weights=weights, inputs=asked, back=placed))
        refuse(told)
        return self.outputs(told, given)

    def outputs(self, told: dict[str, Any], several: Sequence[Inputs]) -> list[Tensor]:
        answers = told.get("answers")
        if not isinstance(answers, list) or len(answers) != len(several):
            answers = [{}] * len(several)
        return [
            self.output(answer if isinstance(answer, dict) else {}, inputs)
            for answer, inputs in zip(answers, several, strict=True)
        ]

    def output(self, answer: dict[str, Any], inputs: Inputs) -> Tensor:
        self.note_written(answer, inputs)
        out = output_in(answer)
        self._same_shape(out, inputs)
        return out

    def note_written(self, answer: dict[str, Any], inputs: Inputs) -> None:
        """That a call wrote into an argument, of which its answer tells."""
        wrote = answer.get("wrote")  # which may be anything
        if isinstance(wrote, str) and wrote in inputs and self.bench.wrote is None:
            self.bench.wrote = wrote, self.latest.sizes

    def _same_shape(self, out: Tensor, inputs: Inputs) -> None:
        """Differences to an empty or a broadcast output can hide everything."""
        if not self.strict:
            return
        given = tuple(t.shape for t in inputs.values() if t is not None)
        shape = self.shapes.get(given)
        if shape is None:
            shape = self.shapes[given] = self._shape(inputs)
        if tuple(out.shape) != shape:
            raise Odd(f"forward returned shape {tuple(out.shape)} this time, expected {shape}")

    def _shape(self, inputs: Inputs) -> tuple[int, ...]:
        """What a call with these inputs should return."""
        sizes = dict(self.sizes)
        for axis in ("B", *LENGTHS):
            there = (s for s in data_inputs(self.contract, axis) if inputs[s.name] is not None)
            for spec in there:
                sizes[axis] = inputs[spec.name].shape[spec.axes.index(axis)]
        return tuple(measure(axis, sizes) for axis in self.contract.output)

    def expected(self, inputs: Inputs, weights: Mapping[str, Tensor] | None = None) -> Tensor:
        reference = self._comparable()
        if weights is None:
            return finite(self.pool.expected(inputs, reference.call))
        held = dict(reference.weights)
        reference.put(weights)
        right = reference.call(inputs)
        reference.put(held)
        return finite(right)

    def expected_each(self, several: Sequence[Inputs]) -> list[Tensor]:
        found = stacked(self.contract, several, self._comparable().call)
        return [finite(right) for right in found]

    def expected_in_training(self, inputs: Inputs, times: int) -> list[Tensor]:
        seed = self.dice.plain.getrandbits(32)
        return [finite(t) for t in self._comparable().in_training(inputs, times, seed)]

    def expected_in_float32(self, inputs: Inputs) -> Tensor:
        return finite(self._comparable().rounded(inputs))

    def expected_gradients(self, inputs: Inputs, cotangent: Tensor) -> Gradients:
        found = self._comparable().gradients(inputs, cotangent)
        return replace(found, parameters=self.equipped.gradients(found.parameters))

    def _comparable(self) -> Reference:
        if self.reference is None:
            raise CannotTell("there is no reference for this module", "no-reference")
        if self.equipped.refusal:
            raise CannotTell(self.equipped.refusal, "no-weights")
        return self.reference

    def cotangent(self, inputs: Inputs) -> Tensor:
        shape = self._shape(inputs) if self.strict else self.call(inputs).shape
        return self.dice.normal(shape)

    def weights(self) -> Mapping[str, Tensor]:
        if self.equipped.refusal:
            raise Skip(f"its weights cannot be told apart: {self.equipped.refusal}")
        return self.parameters() if self.reference is None else self.reference.weights

    def set_weights(self, weights: Mapping[str, Tensor]) -> None:
        refuse(answered(self.host.ask("set_parameters", tensors=self._placed(weights))))

    def _placed(self, weights: Weights, own: bool = False) -> dict[str, Tensor]:
        """By the module's own names and layouts."""
        at = None if own else self.equipped.at
        return dict(weights) if at is None else carried(dict(weights), at)

    def call_rebuilt(
        self, sizes: Mapping[str, int], weights: Mapping[str, Tensor], inputs: Inputs
    ) -> Tensor:
        held = self.parameters()
        try:
            self._build(with_hd({**self.sizes, **sizes}))
            self.set_weights(weights)
            return self.call(inputs)
        finally:
            self._build(self.sizes, held)

    def measure(self, axis: str) -> int:
        return measure(axis, self.sizes)

    def tolerance(self, expected: Tensor) -> float:
        """A sum of n products is off by about sqrt(n) roundings; n is the longest axis of all."""
        largest = expected.abs().max().item() if expected.numel() else 1.0
        terms = max(self.sizes.values(), default=1)
        eps: float = torch.finfo(getattr(torch, self.dtype)).eps
        return SLACK * math.sqrt(terms) * eps * max(1.0, largest)
