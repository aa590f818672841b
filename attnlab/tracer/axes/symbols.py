"""Sizes read back as symbols: 24 is `3*D` where D is 8 and nothing else fits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations_with_replacement

from attnlab.sizes import measure


class Symbols:
    """Reads sizes back as symbols."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.sizes = dict(sizes)
        self.tiers = [_named(tier, sizes) for tier in _tiers(list(sizes))]

    def fit(self, size: int) -> str:
        """The one symbol of this size, else the one product, else the number itself."""
        fits = next((tier[size] for tier in self.tiers if size in tier), [])
        return fits[0] if len(fits) == 1 and size > 1 else str(size)


def _tiers(symbols: list[str]) -> Iterator[list[str]]:
    yield symbols
    if {"H", "Hkv"} <= set(symbols):
        yield ["H/Hkv"]
    yield [f"{k}*{s}" for s in symbols for k in (2, 3, 4)] + [f"{s}/2" for s in symbols]
    for count in (2, 3):
        yield ["*".join(c) for c in combinations_with_replacement(symbols, count)]


def _named(expressions: list[str], sizes: Mapping[str, int]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for text in expressions:
        whole, _, part = text.partition("/")
        if part and sizes[whole] % sizes.get(part, 2):
            continue
        found.setdefault(measure(text, sizes), []).append(text)
    return found
