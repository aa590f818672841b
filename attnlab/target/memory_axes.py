"""Sizes as products of names, and what a reshape does to axes in the order of memory."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate, combinations
from typing import NamedTuple

Size = Counter[str]  # what a size is the product of, and how often: h // 4 is {h: 1, 2: -2}
MOST = 8  # axes of which subsets are tried


class View(NamedTuple):
    """Axes in the order of memory, with the texts that name them."""

    sizes: tuple[Size, ...]
    texts: tuple[str, ...]

    def ordered(self, order: Sequence[int]) -> View:
        """The same axes in another order."""
        return View(tuple(self.sizes[i] for i in order), tuple(self.texts[i] for i in order))


def primes(n: int) -> Size:
    """A number as the product of its prime factors."""
    found: Size = Counter()
    factor = 2
    while n > 1:
        factor = factor if factor * factor <= n else n
        while n % factor == 0:
            found[str(factor)] += 1
            n //= factor
        factor += 1
    return found


def product(sizes: Sequence[Size]) -> Size:
    total: Size = Counter()
    for size in sizes:
        for name, times in size.items():
            total[name] += times
    return Counter({name: times for name, times in total.items() if times})


def quotient(one: Size, other: Size) -> Size:
    return product((one, Counter({name: -times for name, times in other.items()})))


def one_way(size: Size) -> bool:
    """Whether a quotient is no 1: a product of known sizes, or one over such."""
    signs = {times > 0 for times in size.values()}
    return len(signs) == 1 and not any(name.startswith("?") for name in size)


def _real(view: View) -> tuple[list[Size], list[str]]:
    """Without the axes of size 1, which stand anywhere."""
    pairs = [(s, t) for s, t in zip(view.sizes, view.texts, strict=True) if s]
    return [s for s, _ in pairs], [t for _, t in pairs]


def is_skew(before: View, after: View) -> bool:
    """Whether two neighbours changed places, as in the skew of relative positions."""
    one, other = _real(before)[0], _real(after)[0]
    return len(one) > 2 and other == [*one[:-2], one[-1], one[-2]]


def parted(before: View, after: View) -> tuple[str, tuple[str, ...]] | None:
    """The first size, from the left or from the right, that is the product of axes which do not
    stand together."""
    for turned in (False, True):
        sizes, names = _real(before)
        wanted, texts = _real(after)
        if turned:
            sizes, names, wanted, texts = sizes[::-1], names[::-1], wanted[::-1], texts[::-1]
        at = 0
        for size, text in zip(wanted, texts, strict=True):
            runs = list(accumulate(sizes[at:], lambda a, b: product((a, b))))
            if size in runs:
                at += runs.index(size) + 1
                continue
            many = text != "-1" and len(sizes) - at <= MOST and at < len(sizes)
            for n in range(2, len(sizes) - at) if many else ():
                for parts in combinations(range(at, len(sizes)), n):
                    together = parts[-1] - parts[0] == n - 1
                    if not together and product([sizes[i] for i in parts]) == size:
                        shown = [names[i] for i in parts]
                        return text, tuple(shown[::-1] if turned else shown)
            break
    return None


def misplaced(before: View, after: View) -> str | None:
    """A whole axis of both with more before it, or behind it, in one of them."""
    (sizes, names), (wanted, texts) = _real(before), _real(after)
    for at, size in enumerate(wanted):
        unsure = any(name.startswith("?") for name in size) or re.fullmatch(r"-?\d+", texts[at])
        if unsure or wanted.count(size) > 1 or sizes.count(size) != 1 or len(size) != 1:
            continue
        place = sizes.index(size)
        for mine, theirs in ((sizes[:place], wanted[:at]), (sizes[place + 1 :], wanted[at + 1 :])):
            if one_way(quotient(product(theirs), product(mine))):
                return names[place]
    return None
