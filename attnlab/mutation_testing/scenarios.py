"""The scenarios in which two modules are compared: sizes, dtypes, and calls in order."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import torch

from attnlab.catalogue.contract_facts import has_query_axis
from attnlab.probe.answers import Inputs, Mask
from attnlab.probe.inputs import draw
from attnlab.probe.inputs.draw import Dice
from attnlab.probe.inputs.sizes import rounds, suits, within
from attnlab.records import Contract
from attnlab.sizes import Sizes, measure, with_head_dim

MASKED_SCORES = (float("-inf"), -1e9)  # what additive masks add to hide a key
MAX_NUMBERS = 1 << 24  # numbers in all inputs and the output together
LONG = 70  # positions of a long sequence that is read with a cache
MORE_SIZES: tuple[Sizes, ...] = (  # in place of the example's
    {"B": 5, "S": 2},
    {"B": 1, "S": 3},
    {"B": 2, "S": 300, "H": 2, "D": 8},
    {"B": 3, "H": 1},
    {"B": 3, "S": 8, "H": 8, "D": 8},
    {"B": 6, "S": 6, "H": 6, "D": 36},
)
LONG_SIZES: tuple[Sizes, ...] = (  # of modules with positions; M, the longest allowed, grows with S
    {"B": 1, "S": 700, "D": 10, "M": 800},
    {"B": 2, "S": 4500, "D": 6, "M": 4500},
)


@dataclass(frozen=True)
class Step:
    """One request to a module: a verb, the inputs and the mode."""

    verb: str  # "call", "gradients", "inputs_after_call", "cached_steps"
    inputs: Inputs
    train: bool = False
    lengths: tuple[int, ...] = ()  # of the chunks of "cached_steps"


@dataclass(frozen=True)
class Scenario:
    """One module at one set of sizes, and the calls that follow each other."""

    sizes: Sizes
    dtype: torch.dtype
    steps: tuple[Step, ...]
    cotangent: int  # the seed of the vector that gradients are computed for
    refused: bool = False  # building or calling must raise


def make_scenarios(contract: Contract, seed: int, narrow: bool = True) -> Iterator[Scenario]:
    """Every scenario of a contract: float64 at many sizes, other dtypes, refused sizes."""
    maker = StepMaker(contract, Dice(seed))
    examples = list(rounds(contract, random.Random(seed)))
    for number, sizes in enumerate(examples):
        yield Scenario(sizes, torch.float64, tuple(maker.all_steps(sizes)), number)
    for number, sizes in enumerate(_more_sizes(contract)):
        yield Scenario(sizes, torch.float64, tuple(maker.few_steps(sizes)), number)
    for dtype in (torch.float32, *((torch.bfloat16, torch.float16) if narrow else ())):
        sizes = examples[1 if len(examples) > 1 else 0]
        yield Scenario(sizes, dtype, (maker.step(sizes), maker.step(sizes)), 0)
    for refusal in contract.refusals:
        sizes = with_head_dim({**_given_sizes(contract), **refusal.sizes})
        yield Scenario(sizes, torch.float32, (maker.step(sizes, "none"),), 0, refused=True)


def _given_sizes(contract: Contract) -> Sizes:
    """The sizes of the example, without a head size that follows from the others."""
    return {s: n for s, n in contract.sizes.items() if s != "hd" or "D" not in contract.sizes}


def _more_sizes(contract: Contract) -> Iterator[Sizes]:
    for new in (*MORE_SIZES, *(LONG_SIZES if contract.position else ())):
        free = {*contract.vary, "M"}
        changed = {s: n for s, n in new.items() if s in free and s in contract.sizes}
        sizes = within(with_head_dim({**_given_sizes(contract), **changed}))
        whole = sizes.get("D", 0) % sizes.get("H", 1) == 0 and suits(contract, sizes)
        if changed and whole and "Hkv" not in sizes and _numbers(contract, sizes) <= MAX_NUMBERS:
            yield sizes


def _numbers(contract: Contract, sizes: Sizes) -> int:
    """How many numbers inputs and output hold: scores of long sequences fill the memory."""
    shapes = [*(i.axes for i in contract.inputs), contract.output]
    return sum(prod(measure(axis, sizes) for axis in axes) for axes in shapes)


@dataclass(frozen=True)
class StepMaker:
    """Draws the inputs of steps, one after the other."""

    contract: Contract
    dice: Dice

    def step(
        self,
        sizes: Sizes,
        mask: Mask = "random",
        scale: float = 1.0,
        verb: str = "call",
        train: bool = False,
    ) -> Step:
        return Step(verb, draw.inputs(self.contract, sizes, self.dice, mask, scale), train)

    def all_steps(self, sizes: Sizes) -> Iterator[Step]:
        """Calls of one module with longer and shorter inputs in turn, which shows kept state."""
        contract = self.contract
        masks: list[Mask] = ["random", "causal", "none"]
        masks += ["empty-rows"] if "empty-rows" in contract.promises else []
        longer = {**sizes, "S": sizes["S"] + 3} if "S" in contract.vary and "S" in sizes else sizes
        for mask in masks:
            for scale in (1.0, 0.1, 10.0, 30.0) if mask == "random" else (1.0, 30.0):
                yield self.step(sizes, mask, scale)
            yield self.step(within(longer), mask)
            yield self.step(sizes, mask, train=True)
            yield self.step(sizes, mask, verb="gradients")
            yield self.step(sizes, mask, verb="inputs_after_call")
        yield from self.additive_mask_steps(sizes)
        if contract.cache is not None and sizes.get("S", 0) > 1:
            yield from self.cached_steps(sizes)

    def few_steps(self, sizes: Sizes) -> Iterator[Step]:
        yield self.step(sizes)
        yield self.step(sizes, "none", 10.0)
        if "S" in self.contract.vary and "S" in sizes:
            yield self.step({**sizes, "S": 3}, train=True)

    def additive_mask_steps(self, sizes: Sizes) -> Iterator[Step]:
        """Steps whose boolean masks are written as numbers that are added to scores."""
        masks = [i for i in self.contract.inputs if i.role == "mask" and i.additive]
        for score in MASKED_SCORES if masks else ():
            inputs = self.step(sizes).inputs
            for spec in masks:
                forbidden = inputs[spec.name] == spec.forbids
                inputs[spec.name] = torch.zeros(forbidden.shape).masked_fill(forbidden, score)
            yield Step("call", inputs)
            yield Step("call", inputs, train=True)
            yield Step("gradients", inputs)

    def cached_steps(self, sizes: Sizes) -> Iterator[Step]:
        """Two calls that share a cache: a prompt and one position, or the reverse."""
        padding: Mask = "left-padding" if "empty-rows" in self.contract.promises else "padding"
        mask: Mask = "causal" if any(map(has_query_axis, self.contract.inputs)) else padding
        longer = within({**sizes, "S": LONG}) if "S" in self.contract.vary else sizes
        for size in (sizes, longer):
            length = size["S"]
            for lengths in ((length - 1, 1), (1, length - 1)):
                inputs = self.step(size, mask).inputs
                for train in (False, True):
                    yield Step("cached_steps", inputs, train, lengths)
