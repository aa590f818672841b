"""The probe: a check's verbs, answered by a host and a reference that share the same weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attnlab.checks.base import CannotTell, Gradients, Inputs, Mask, data_inputs
from attnlab.lab import draw
from attnlab.lab.draw import Dice
from attnlab.lab.host import Host, Raised, answered
from attnlab.lab.reference import Reference
from attnlab.lab.sizes import Sizes, built, measure, with_hd, within
from attnlab.records import Contract

EPS = torch.finfo(torch.float32).eps
SLACK = 400  # times eps: a chain of matmuls, a softmax and a norm, with room


class Odd(Exception):
    """The module answered with something that cannot be compared; the message says what."""


@dataclass
class Bench:
    """What the rounds of one job share."""

    contract: Contract
    name: str | None  # the class to build; None = the only one
    host: Host
    renew: Callable[[], Host]  # a fresh host, after the last one died
    dice: Dice
    reference: Reference | None


class HostProbe:
    """One round: one set of sizes, one freshly built module, one set of weights."""

    def __init__(self, bench: Bench, sizes: Sizes) -> None:
        self.bench = bench
        self.contract = bench.contract
        self.sizes = sizes
        self.host = bench.host
        self.dice = bench.dice
        self.reference = bench.reference
        self.strict = False  # True once output-shape has passed: the shape must not change again
        self.refusal = ""  # why the reference's weights do not fit, once that is known

    def equip(self) -> None:
        """Build the module and give it the reference's weights, where they fit."""
        init = built(self.contract.init, self.sizes)
        seed = self.dice.plain.getrandbits(32)
        answered(self.host.ask("build", name=self.bench.name, init=init, seed=seed))
        if self.reference is None:
            return
        weights = self.reference.equip(init, self.dice)
        told = answered(self.host.ask("put", tensors=weights))
        self.refusal = _misfit(told)

    # ------------------------------------------------------------ drawing

    def draw(self, mask: Mask = "random", scale: float = 1.0, longer: int = 0) -> Inputs:
        sizes = self.sizes
        if longer and "S" in self.contract.vary and "S" in sizes:
            sizes = within({**sizes, "S": sizes["S"] + longer})
        return draw.inputs(self.contract, sizes, self.dice, mask, scale)

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
        out = answer.get("output")
        if isinstance(out, Tensor) and _is_plain(out):
            self._same_shape(out, inputs)
            return out.as_subclass(Tensor)
        if isinstance(out, Tensor):  # only a session in this process can hand one over
            odd = f"a {str(out.dtype).removeprefix('torch.')} {out.layout} tensor"
        else:
            odd = str(out.get("$odd") if isinstance(out, dict) else answer.get("kind", "nothing"))
        raise Odd(f"forward returned {odd[:200]}, not one plain tensor")

    def _same_shape(self, out: Tensor, inputs: Inputs) -> None:
        """Differences to an empty or a broadcast output can hide everything."""
        sizes = dict(self.sizes)
        for spec in data_inputs(self.contract, "S"):
            sizes["S"] = inputs[spec.name].shape[spec.axes.index("S")]
        shape = tuple(measure(axis, sizes) for axis in self.contract.output)
        if self.strict and tuple(out.shape) != shape:
            raise Odd(f"forward returned shape {tuple(out.shape)} this time, expected {shape}")

    def expected(self, inputs: Inputs) -> Tensor:
        return self._comparable().call(inputs)

    def expected_gradients(self, inputs: Inputs, cotangent: Tensor) -> Gradients:
        return self._comparable().gradients(inputs, cotangent)

    def _comparable(self) -> Reference:
        if self.reference is None:
            raise CannotTell("there is no reference for this module", "no-reference")
        if self.refusal:
            raise CannotTell(self.refusal, "no-weights")
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

    def raised(self, sizes: Mapping[str, int]) -> tuple[str, ...] | None:
        """Builds a module of its own for the purpose, then builds this round's again."""
        other = {**self.sizes, **sizes}
        if "hd" not in self.contract.sizes:
            other.pop("hd", None)  # it was D / H, and these may be others
        other = with_hd(other)
        init = built(self.contract.init, other)
        given = draw.inputs(self.contract, other, self.dice)
        try:
            answered(self.host.ask("build", name=self.bench.name, init=init, seed=0))
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
        largest = expected.abs().max().item() if expected.numel() else 1.0
        return SLACK * EPS * max(1.0, largest)


def _is_plain(t: Tensor) -> bool:
    return t.layout is torch.strided and not (t.is_complex() or t.is_meta or t.is_quantized)


def _tensors(told: dict[str, Any], key: str) -> dict[str, Tensor]:
    found = told.get(key)
    if not isinstance(found, dict):
        return {}
    return {str(n): t for n, t in found.items() if isinstance(t, Tensor)}


def _misfit(told: dict[str, Any]) -> str:
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
