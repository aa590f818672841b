"""The probe: a check's verbs, answered by a host and a reference that share the same weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from attnlab.checks.base import CannotTell, Gradients, Inputs, Mask, Seen, Skip, data_inputs
from attnlab.lab import draw
from attnlab.lab.asking import Asking, Odd
from attnlab.lab.draw import Dice
from attnlab.lab.host import Host, Raised, answered
from attnlab.lab.layouts import carried
from attnlab.lab.reference import Reference
from attnlab.lab.sizes import Sizes, built, measure, with_hd, within
from attnlab.lab.weights import Desk, Equipped, Outfitter, misfit
from attnlab.records import Contract, plain

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
    full: bool = False  # also the checks that are made on demand only
    brief: bool = False  # the first failed check is enough
    only: frozenset[str] = frozenset()  # the checks to make; none named = all


class HostProbe(Asking):
    """One round: one set of sizes, one freshly built module, one set of weights."""

    def __init__(self, bench: Bench, sizes: Sizes, dtype: str = "float32") -> None:
        self.bench = bench
        self.contract = bench.contract
        self.sizes = sizes
        self.host = bench.host
        self.dice = bench.dice
        self.reference = bench.reference
        self.strict = False  # True once output-shape has passed: the shape must not change again
        self.equipped = Equipped()
        self.dtype = dtype
        self.shapes: dict[tuple[torch.Size, ...], tuple[int, ...]] = {}  # of outputs, by inputs
        self.latest = self  # the probe whose module the host has: one that `at` made, or this one

    def equip(self) -> None:
        """Build the module and give it the reference's weights, where they fit."""
        if self.contract.cache:
            answered(self.host.ask("keep", **plain(self.contract.cache)))
        if self.reference is not None:
            desk = Desk(self.host, self.bench.name, self.reference, self.contract, self.dice)
            self.equipped = self.bench.outfitter.equip(desk, self.sizes)
        else:
            self._build(self.sizes)
        self.latest = self

    def recipe(self) -> dict[str, Any]:
        init = built(self.contract.init, self.sizes)
        return {"name": self.bench.name, "init": init, "seed": self.dice.plain.getrandbits(32)}

    def at(self, sizes: Mapping[str, int] | None = None, dtype: str = "float32") -> HostProbe:
        self.back()
        wanted = {**self.sizes, **(sizes or {})}
        if "hd" not in self.contract.sizes:
            wanted.pop("hd", None)  # it was D / H, and these may be others
        other = HostProbe(self.bench, with_hd(wanted), dtype)
        other.reference, other.strict, self.latest = None, self.strict, other
        recipe = other.recipe()
        same = recipe["init"] == self.recipe()["init"]
        if same and dtype == self.dtype:  # other sizes need no other module
            return other
        answered(self.host.ask("aside"))
        if not same or answered(self.host.ask("twin")).get("failed"):
            answered(self.host.ask("build", **recipe))
            other.overwrite(draw.weights({n: p.shape for n, p in other.parameters().items()},
                                         self.dice))  # fmt: skip
        answered(self.host.ask("cast", dtype=dtype))
        return other

    def as_built(self) -> Mapping[str, Tensor]:
        self.back()
        self.latest = HostProbe(self.bench, self.sizes)
        answered(self.host.ask("aside"))
        answered(self.host.ask("build", **self.recipe()))
        return self.parameters()

    def back(self) -> None:
        """The module of this probe again, after `at`."""
        if self.latest is not self:
            self.latest = self
            answered(self.host.ask("back"))

    def in_float64(self) -> HostProbe | None:
        try:
            wide = self.at(dtype="float64")
            return wide if wide.call(wide.draw()).dtype is torch.float64 else None
        except Raised:
            return None

    def _build(self, sizes: Sizes) -> None:
        init, seed = built(self.contract.init, sizes), self.dice.plain.getrandbits(32)
        answered(self.host.ask("build", name=self.bench.name, init=init, seed=seed))

    # ------------------------------------------------------------ drawing

    def draw(self, mask: Mask = "random", scale: float = 1.0, longer: int = 0) -> Inputs:
        sizes = self.sizes
        if longer and "S" in self.contract.vary and "S" in sizes:
            sizes = within({**sizes, "S": sizes["S"] + longer})
        drawn = draw.inputs(self.contract, sizes, self.dice, mask, scale)
        dtype = getattr(torch, self.dtype)
        return {
            n: t.to(dtype) if t is not None and t.is_floating_point() else t
            for n, t in drawn.items()
        }

    def noise(self, like: Tensor, scale: float = 1.0) -> Tensor:
        if like.dtype is torch.bool:
            return self.dice.chance(tuple(like.shape), 0.5)
        if not like.is_floating_point():
            return self.dice.integers(like.shape, self.sizes.get("V", 16))
        return self.dice.normal(like.shape, scale).to(like.dtype)

    def pick(self, low: int, high: int) -> int:
        return self.dice.plain.randrange(low, high)

    # ------------------------------------------------------------ asking

    def call(self, inputs: Inputs, train: bool = False) -> Tensor:
        answer = answered(self.host.ask("call", inputs=list(inputs.items()), train=train))
        return self.output(answer, inputs)

    def calls(self, several: Sequence[Inputs], train: bool = False) -> list[Tensor]:
        asked = [list(inputs.items()) for inputs in several]
        told = answered(self.host.ask("calls", inputs=asked, train=train)).get("answers")
        answers = told if isinstance(told, list) and len(told) == len(asked) else [{}] * len(asked)
        return [
            self.output(answer if isinstance(answer, dict) else {}, inputs)
            for answer, inputs in zip(answers, several, strict=True)
        ]

    def output(self, answer: dict[str, Any], inputs: Inputs) -> Tensor:
        out = answer.get("output")
        if isinstance(out, Tensor) and _is_plain(out):
            self._same_shape(out, inputs)
            return out.as_subclass(Tensor)
        if isinstance(out, Tensor):  # only a session in this process can hand one over
            place = " on the meta device" if out.is_meta else ""
            odd = f"a {str(out.dtype).removeprefix('torch.')} {out.layout} tensor{place}"
        else:
            odd = str(out.get("$odd") if isinstance(out, dict) else answer.get("kind", "nothing"))
        raise Odd(f"forward returned {odd[:200]}, not one plain tensor")

    def steps(self, calls: Sequence[Inputs], parents: Tensor | None = None) -> list[Tensor]:
        asked = [list(inputs.items()) for inputs in calls]
        spec = data_inputs(self.contract, "S")[0]
        length = sum(inputs[spec.name].shape[spec.axes.index("S")] for inputs in calls)
        rows = calls[0][spec.name].shape[spec.axes.index("B")] if "B" in spec.axes else 1
        told = answered(
            self.host.ask("steps", calls=asked, batch=rows, length=length, parents=parents)
        )
        found = list(_tensors(told, "outputs").values())
        if len(found) != len(calls) or not all(map(_is_plain, found)):
            raise Odd("forward with a cache returned something else than one plain tensor")
        return found

    def seen(self, inputs: Inputs) -> Seen:
        told = answered(self.host.ask("seen", inputs=list(inputs.items())))
        lowest = told.get("lowest")
        return Seen(
            scores=tuple(_tensors(told, "scores").values()),
            sums=tuple(_tensors(told, "sums").values()),
            lowest=lowest if isinstance(lowest, float) else math.nan,
        )

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
        for axis in ("B", "S", "Sq"):
            for spec in data_inputs(self.contract, axis):
                sizes[axis] = inputs[spec.name].shape[spec.axes.index(axis)]
        return tuple(measure(axis, sizes) for axis in self.contract.output)

    def expected(self, inputs: Inputs, weights: Mapping[str, Tensor] | None = None) -> Tensor:
        reference = self._comparable()
        held = dict(reference.weights)
        if weights is not None:
            reference.put(weights)
        right = reference.call(inputs)
        if weights is not None:
            reference.put(held)
        if not right.isfinite().all():
            raise CannotTell("the reference itself gives NaN or infinity here", "reference")
        return right

    def expected_gradients(self, inputs: Inputs, cotangent: Tensor) -> Gradients:
        found = self._comparable().gradients(inputs, cotangent)
        return replace(found, parameters=self.equipped.gradients(found.parameters))

    def _comparable(self) -> Reference:
        if self.reference is None:
            raise CannotTell("there is no reference for this module", "no-reference")
        if self.equipped.refusal:
            raise CannotTell(self.equipped.refusal, "no-weights")
        return self.reference

    def gradients(self, inputs: Inputs) -> Gradients:
        out = self.call(inputs)
        cotangent = self.dice.normal(out.shape)
        told = answered(
            self.host.ask("gradients", inputs=list(inputs.items()), cotangent=cotangent)
        )
        return Gradients(
            cotangent=cotangent,
            inputs=_tensors(told, "inputs"),
            parameters=_tensors(told, "weights"),
        )

    def inputs_after(self, inputs: Inputs) -> Inputs:
        return _tensors(answered(self.host.ask("after", inputs=list(inputs.items()))), "tensors")

    def parameters(self) -> Mapping[str, Tensor]:
        return _tensors(answered(self.host.ask("parameters")), "tensors")

    def buffers(self) -> Mapping[str, Tensor]:
        return _tensors(answered(self.host.ask("buffers")), "tensors")

    def weights(self) -> Mapping[str, Tensor]:
        if self.equipped.refusal:
            raise Skip(f"its weights cannot be told apart: {self.equipped.refusal}")
        return self.parameters() if self.reference is None else self.reference.weights

    def put(self, weights: Mapping[str, Tensor]) -> None:
        named = dict(weights)
        if self.equipped.at is not None:
            named = carried(named, self.equipped.at)
        refusal = misfit(answered(self.host.ask("put", tensors=named)))
        if refusal:
            raise Skip(f"its weights cannot be replaced: {refusal}")

    def renew(self) -> None:
        self._again(self.parameters())

    def _again(self, held: Mapping[str, Tensor]) -> None:
        self._build(self.sizes)
        answered(self.host.ask("put", tensors=dict(held)))

    def rebuilt(
        self, sizes: Mapping[str, int], weights: Mapping[str, Tensor], inputs: Inputs
    ) -> Tensor:
        held = self.parameters()
        try:
            self._build(with_hd({**self.sizes, **sizes}))
            self.put(weights)
            return self.call(inputs)
        finally:
            self._again(held)

    def raised(self, sizes: Mapping[str, int]) -> tuple[str, ...] | None:
        """Builds a module of its own for the purpose, then builds this round's again."""
        other = {**self.sizes, **sizes}
        if "hd" not in self.contract.sizes:
            other.pop("hd", None)  # it was D / H, and these may be others
        other = with_hd(other)
        given = draw.inputs(self.contract, other, self.dice)
        try:
            self._build(other)
            answered(self.host.ask("call", inputs=list(given.items())))
        except Raised as error:
            kinds: tuple[str, ...] | None = error.kinds
        else:
            kinds = None
        self.equip()
        return kinds

    def measure(self, axis: str) -> int:
        return measure(axis, self.sizes)

    def tolerance(self, expected: Tensor) -> float:
        """A sum of n products is off by about sqrt(n) roundings; n is the longest axis of all."""
        largest = expected.abs().max().item() if expected.numel() else 1.0
        terms = max(self.sizes.values(), default=1)
        eps: float = torch.finfo(getattr(torch, self.dtype)).eps
        return SLACK * math.sqrt(terms) * eps * max(1.0, largest)


def _is_plain(t: Tensor) -> bool:
    return t.layout is torch.strided and not (t.is_complex() or t.is_meta or t.is_quantized)


def _tensors(told: dict[str, Any], key: str) -> dict[str, Tensor]:
    found = told.get(key)
    if not isinstance(found, dict):
        return {}
    return {str(n): t for n, t in found.items() if isinstance(t, Tensor)}
