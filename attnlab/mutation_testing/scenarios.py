"""What is asked of two modules to see whether they do the same: sizes, dtypes, calls in order."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import torch

from attnlab.catalogue.contract_facts import has_query_axis
from attnlab.checks.base import Inputs, Mask
from attnlab.probe.inputs import draw
from attnlab.probe.inputs.draw import Dice
from attnlab.probe.inputs.sizes import rounds, suits, within
from attnlab.records import Contract
from attnlab.sizes import Sizes, measure, with_head_dim

LOWEST = (float("-inf"), -1e9)  # what is added to a score to hide it
MOST = 1 << 24  # numbers in what is given and returned
LONG = 70  # positions that are read with a cache
MORE: tuple[Sizes, ...] = (  # over the example's
    {"B": 5, "S": 2},
    {"B": 1, "S": 3},
    {"B": 2, "S": 300, "H": 2, "D": 8},
    {"B": 3, "H": 1},
    {"B": 3, "S": 8, "H": 8, "D": 8},
    {"B": 6, "S": 6, "H": 6, "D": 36},
)
FAR: tuple[Sizes, ...] = (  # M, the longest a module takes, grows with S
    {"B": 1, "S": 700, "D": 10, "M": 800},
    {"B": 2, "S": 4500, "D": 6, "M": 4500},
)


@dataclass(frozen=True)
class Step:
    """One call: what is given, in which mode, and what is looked at."""

    verb: str  # "call", "gradients", "inputs_after_call", "cached_steps"
    inputs: Inputs
    train: bool = False
    lengths: tuple[int, ...] = ()  # of the pieces, where they are read with a cache


@dataclass(frozen=True)
class Scenario:
    """One module at one set of sizes, with weights, and the calls that follow each other."""

    sizes: Sizes
    dtype: torch.dtype
    steps: tuple[Step, ...]
    cotangent: int  # the seed of what gradients are asked of
    refused: bool = False  # building or calling must raise


def scenarios_of(contract: Contract, seed: int) -> Iterator[Scenario]:
    dice = Dice(seed)
    doubles = list(rounds(contract, random.Random(seed)))
    for number, sizes in enumerate(doubles):
        yield Scenario(sizes, torch.float64, tuple(_steps(contract, sizes, dice)), number)
    for number, sizes in enumerate(_more(contract)):
        yield Scenario(sizes, torch.float64, tuple(_few_steps(contract, sizes, dice)), number)
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        sizes = doubles[1 if len(doubles) > 1 else 0]
        calls = [Step("call", _draw_inputs(contract, sizes, dice, "random", 1.0)) for _ in range(2)]
        yield Scenario(sizes, dtype, tuple(calls), 0)
    for refusal in contract.refusals:
        sizes = {s: n for s, n in contract.sizes.items() if s != "hd" or "D" not in contract.sizes}
        other = with_head_dim({**sizes, **refusal.sizes})
        call = Step("call", _draw_inputs(contract, other, dice, "none", 1.0))
        yield Scenario(other, torch.float32, (call,), 0, refused=True)


def _more(contract: Contract) -> Iterator[Sizes]:
    for fresh in (*MORE, *(FAR if contract.position else ())):
        free = {*contract.vary, "M"}
        changed = {s: n for s, n in fresh.items() if s in free and s in contract.sizes}
        plain = {s: n for s, n in contract.sizes.items() if s != "hd" or "D" not in contract.sizes}
        sizes = within(with_head_dim({**plain, **changed}))
        whole = sizes.get("D", 0) % sizes.get("H", 1) == 0 and suits(contract, sizes)
        if changed and whole and "Hkv" not in sizes and _numbers(contract, sizes) <= MOST:
            yield sizes


def _numbers(contract: Contract, sizes: Sizes) -> int:
    """Of all inputs and the output: scores of thousands of positions fill the memory."""
    shapes = [*(i.axes for i in contract.inputs), contract.output]
    return sum(prod(measure(axis, sizes) for axis in axes) for axes in shapes)


def _steps(contract: Contract, sizes: Sizes, dice: Dice) -> Iterator[Step]:
    """Longer and shorter calls of one module in turn, so that nothing may be kept between them."""
    kinds: list[Mask] = ["random", "causal", "none"]
    kinds += ["empty-rows"] if "empty-rows" in contract.promises else []
    longer = {**sizes, "S": sizes["S"] + 3} if "S" in contract.vary and "S" in sizes else sizes
    for mask in kinds:
        for scale in (1.0, 0.1, 10.0, 30.0) if mask == "random" else (1.0, 30.0):
            yield Step("call", _draw_inputs(contract, sizes, dice, mask, scale))
        yield Step("call", _draw_inputs(contract, within(longer), dice, mask, 1.0))
        yield Step("call", _draw_inputs(contract, sizes, dice, mask, 1.0), train=True)
        yield Step("gradients", _draw_inputs(contract, sizes, dice, mask, 1.0))
        yield Step("inputs_after_call", _draw_inputs(contract, sizes, dice, mask, 1.0))
    yield from _float_masks(contract, sizes, dice)
    if contract.cache is not None and sizes.get("S", 0) > 1:
        yield from _pieces(contract, sizes, dice)


def _float_masks(contract: Contract, sizes: Sizes, dice: Dice) -> Iterator[Step]:
    """What booleans say, as numbers that are added to the scores."""
    added = [i for i in contract.inputs if i.role == "mask" and i.additive]
    for low in LOWEST if added else ():
        inputs = _draw_inputs(contract, sizes, dice, "random", 1.0)
        for spec in added:
            forbidden = inputs[spec.name] == spec.forbids
            inputs[spec.name] = torch.zeros(forbidden.shape).masked_fill(forbidden, low)
        yield Step("call", inputs)
        yield Step("call", inputs, train=True)
        yield Step("gradients", inputs)


def _pieces(contract: Contract, sizes: Sizes, dice: Dice) -> Iterator[Step]:
    """A sequence in calls that share a cache: a prompt and steps of one, two chunks; a long one."""
    own = any(map(has_query_axis, contract.inputs))
    longer = within({**sizes, "S": LONG}) if "S" in contract.vary else sizes
    for size in (sizes, longer):
        length = size["S"]
        for lengths in ((length - 1, 1), (1, length - 1)):
            inputs = _draw_inputs(contract, size, dice, "causal" if own else "padding", 1.0)
            for train in (False, True):
                yield Step("cached_steps", inputs, train=train, lengths=lengths)


def _few_steps(contract: Contract, sizes: Sizes, dice: Dice) -> Iterator[Step]:
    yield Step("call", _draw_inputs(contract, sizes, dice, "random", 1.0))
    yield Step("call", _draw_inputs(contract, sizes, dice, "none", 10.0))
    if "S" in contract.vary and "S" in sizes:
        yield Step(
            "call", _draw_inputs(contract, {**sizes, "S": 3}, dice, "random", 1.0), train=True
        )


def _draw_inputs(contract: Contract, sizes: Sizes, dice: Dice, mask: Mask, scale: float) -> Inputs:
    return draw.inputs(contract, sizes, dice, mask, scale)
