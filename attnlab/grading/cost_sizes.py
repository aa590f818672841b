"""Sizes at which a module is counted beside its example's."""

import re
from collections.abc import Iterator
from dataclasses import replace
from math import lcm

from attnlab.records import Contract
from attnlab.sizes import Sizes, with_head_dim
from attnlab.target.infer import SIZES
from attnlab.tracer.formulas import LENGTHS

EVEN = ("D", "C", "E", "hd", "F")  # widths: halves of them are usual


def free_symbols(contract: Contract) -> list[str]:
    """The symbols that stand in the constructor's arguments or in the axes of inputs; of D, H and
    hd, D follows from the others."""
    said = (*contract.init.values(), *contract.arguments.values())
    texts = [
        *(str(v) for v in said if isinstance(v, str)),
        *(a for i in contract.inputs for a in i.axes),
    ]
    used = {word for text in texts for word in re.findall(r"[A-Za-z]\w*", text)}
    sizes = with_head_dim(contract.sizes)
    if {"D", "H", "hd"} <= sizes.keys() and {"D", "hd"} & used:
        used = (used | {"hd"}) - {"D"}
    return [symbol for symbol in sizes if symbol in used]


def small(contract: Contract) -> Contract:
    """The contract at sizes that run in no time, where heads still divide the width."""
    sizes = {symbol: min(n, SIZES.get(symbol, n)) for symbol, n in contract.sizes.items()}
    fits = sizes.get("D", 0) % sizes.get("H", 1) == sizes.get("H", 0) % sizes.get("Hkv", 1) == 0
    return replace(contract, sizes=sizes) if fits else contract


class Draft:
    """Changes to the example's sizes that keep what depends on each other."""

    def __init__(self, contract: Contract) -> None:
        self.contract = contract
        self.first = with_head_dim(contract.sizes)
        split = {"D", "H", "hd"} <= self.first.keys()
        self.follows = {"D"} if split else {"hd"}

    def others(self, symbol: str) -> Iterator[int]:
        """Other sizes of a symbol, the likeliest first."""
        n, heads = self.first[symbol], self.first.get("H", 0)
        if symbol == "Hkv":
            yield from (k for k in range(heads, 0, -1) if k != n and heads % k == 0)
            return
        step = self._step(symbol)
        most = self.first.get("M", n + step) if symbol in LENGTHS else n + step
        for size in (n + step, 2 * n, n - step, n - 1):
            if 0 < size != n and size <= max(most, 2 * n * (symbol not in LENGTHS)):
                yield size

    def _step(self, symbol: str) -> int:
        step = 2 if symbol in (*EVEN, *LENGTHS) else 1
        step = self.first.get("Hkv", 1) if symbol == "H" else step
        return lcm(step, self.contract.multiples.get(symbol, 1))

    def further(self, changes: Sizes) -> Sizes:
        """Sizes well beyond the changes, and in no series with them: what is rounded there, as
        `int(8 * D / 3)`, is on no line through the others."""
        found = dict(changes)
        for symbol, size in changes.items():
            next_ = size + self.first[symbol]
            longest = self.first.get("M", next_) if symbol in LENGTHS else next_
            if symbol != "Hkv" and 0 < next_ <= longest:
                found[symbol] = next_
        return found

    def change(self, changes: Sizes) -> Sizes:
        """The sizes with these changes; D stays H times hd, and H a multiple of Hkv."""
        sizes = {**self.first, **changes}
        if "Hkv" in changes and len(changes) > 1 and "H" in sizes:
            sizes["H"] += -sizes["H"] % sizes["Hkv"]
        if "D" in self.follows:
            sizes["D"] = sizes["H"] * sizes["hd"]
        return sizes
