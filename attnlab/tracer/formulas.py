"""Formulas in the symbols of sizes, solved from what was counted at several sets of them."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import reduce
from itertools import chain, combinations
from math import prod
from typing import NamedTuple

from attnlab.sizes import Sizes

LENGTHS = ("S", "T", "L", "Sq", "Sk")
HIGHEST = 4  # power of a size in what is counted
Number = int | Fraction
Key = tuple[str | int, ...]  # of what is counted: its module, its place, its name
Formula = dict[tuple[str, ...], Number]  # factors, in order, by what they are multiplied by
Item = tuple[Key, tuple[Number, ...]]  # what is counted, and the factors of its number


class Part(NamedTuple):
    """One item of the first set of sizes, or all of its key."""

    key: Key
    place: int | None  # among the items of its key; None = all of them
    formula: Formula | None  # None where nothing fits


def evaluate(formula: Formula, sizes: Sizes) -> Number:
    """The value of a formula at sizes for all of its symbols."""
    return sum(n * prod(sizes[symbol] for symbol in key) for key, n in formula.items())


def format_formula(formula: Formula) -> str:
    """`24*B*S*D**2 + 4*B*S**2*D`: the terms with the most factors first."""
    terms = sorted(formula.items(), key=lambda term: (-len(term[0]), -term[1], term[0]))
    text = " + ".join(_term(key, Fraction(n)) for key, n in terms if n)
    return text.replace("+ -", "- ")


def _term(key: tuple[str, ...], n: Fraction) -> str:
    powers = [f"{s}**{k}" if k > 1 else s for s, k in Counter(key).items()]
    times = {1: [], -1: ["-1"]}.get(n.numerator, [str(n.numerator)]) if powers else [str(n)]
    return "*".join([*times, *powers]) + (
        f"/{n.denominator}" if powers and n.denominator > 1 else ""
    )


def total(formulas: Iterable[Formula | None]) -> Formula | None:
    """The sum; None where one is missing."""
    found: Formula = defaultdict(int)
    for formula in formulas:
        if formula is None:
            return None
        for key, n in formula.items():
            found[key] += n
    return {key: n for key, n in found.items() if n}


class Solver:
    """Several sets of sizes: the first one, sets in which one symbol alone is another, and sets
    that what was solved must fit as well.

    Each factor of an item (an axis, FLOPs per element) is solved for itself: powers of symbols
    times a sum of them, as `2*D` or `B*(S + T)`. No two symbols need to differ in size, as each is
    changed without the others. Only hd, D and H are changed together: D stays H times hd."""

    def __init__(self, sizes: Sequence[Sizes]) -> None:
        self.sizes, first = sizes, sizes[0]
        varied = [s for s in first if any(at.get(s) != first[s] for at in sizes)]
        if all("hd" in at and at.get("D") == at.get("H", 0) * at["hd"] for at in sizes):
            varied = [s for s in varied if s != ("D" if "H" in varied else "hd")]
        others = {tuple(s for s in varied if at[s] != first[s]): i for i, at in enumerate(sizes)}
        self.alone = {s: others[(s,)] for s in varied if (s,) in others}
        self.order = {s: i for i, s in enumerate(dict.fromkeys(("B", *LENGTHS, *first)))}
        self._known: dict[tuple[Number, ...], Formula | None] = {}

    def parts(self, runs: Sequence[Sequence[Item]]) -> list[Part]:
        """A formula of each item; of all of its key where runs differ in how many there are."""
        found: list[Part] = []
        by_key = [_by_key(run) for run in runs]
        for key in dict.fromkeys(chain.from_iterable(by_key)):
            same = [run.get(key, []) for run in by_key]
            counts = {(len(items), *map(len, items)) for items in same}
            each = zip(*same, strict=True) if len(counts) == 1 else ()
            single = [self.product(item) for item in each]
            if single and None not in single:
                found += [Part(key, place, formula) for place, formula in enumerate(single)]
            else:
                found.append(Part(key, None, self.solve([sum(map(prod, items)) for items in same])))
        return found

    def product(self, factors: Sequence[tuple[Number, ...]]) -> Formula | None:
        """The formula of a product, from its factors at each set of sizes."""
        solved = [self.solve(values) for values in zip(*factors, strict=True)]
        known = [formula for formula in solved if formula is not None]
        one: Formula = {(): 1}
        return reduce(self._times, known, one) if len(known) == len(solved) else None

    def solve(self, values: Sequence[Number]) -> Formula | None:
        """The formula that has these values at the sets of sizes; None where none is found."""
        key = tuple(values)
        if key not in self._known:
            self._known[key] = self._solve(key)
        return self._known[key]

    def _solve(self, values: tuple[Number, ...]) -> Formula | None:
        if not all(values):
            return None if any(values) else {}
        powers = {s: self._power(values, s) for s in self.alone}
        pure = [s for s, power in powers.items() for _ in range(power or 0)]
        mixed = [s for s, power in powers.items() if power is None]
        rest = self._without(values, pure)
        for some in chain.from_iterable(combinations(mixed, n) for n in range(len(mixed) + 1)):
            line = self._line(self._without(rest, some), mixed)
            if line is not None:
                return self._times({tuple(pure): 1}, self._times({some: 1}, line))
        return None

    def _power(self, values: Sequence[Number], symbol: str) -> int | None:
        """The power of a symbol that alone explains the value where nothing else is changed."""
        other = self.alone[symbol]
        ratio = Fraction(self.sizes[other][symbol], self.sizes[0][symbol])
        grown = Fraction(values[other]) / values[0]
        return next((n for n in range(HIGHEST) if ratio**n == grown), None)

    def _without(self, values: Sequence[Number], symbols: Sequence[str]) -> list[Fraction]:
        pairs = zip(values, self.sizes, strict=True)
        return [Fraction(n) / prod(at[s] for s in symbols) for n, at in pairs]

    def _line(self, values: Sequence[Fraction], symbols: Sequence[str]) -> Formula | None:
        """`S + 2*T + 1`, if it has these values everywhere."""
        first = self.sizes[0]
        found: Formula = {}
        for s in symbols:
            other = self.alone[s]
            found[(s,)] = (values[other] - values[0]) / (self.sizes[other][s] - first[s])
        found[()] = values[0] - evaluate(found, first)
        same = all(evaluate(found, at) == n for n, at in zip(values, self.sizes, strict=True))
        return {key: n for key, n in found.items() if n} if same else None

    def _times(self, one: Formula, other: Formula) -> Formula:
        found: Formula = defaultdict(int)
        for (key, n), (key2, m) in ((a, b) for a in one.items() for b in other.items()):
            found[self._ordered([*key, *key2])] += n * m
        return dict(found)

    def _ordered(self, factors: list[str]) -> tuple[str, ...]:
        """Factors in the usual order; H and hd of heads are D together."""
        if "H" in self.alone and "hd" in self.alone and "D" in self.sizes[0]:
            for _ in range(min(factors.count("H"), factors.count("hd"))):
                factors.remove("H")
                factors.remove("hd")
                factors.append("D")
        return tuple(sorted(factors, key=lambda f: self.order[f]))


def _by_key(items: Sequence[Item]) -> dict[Key, list[tuple[Number, ...]]]:
    found: dict[Key, list[tuple[Number, ...]]] = defaultdict(list)
    for key, factors in items:
        found[key].append(factors)
    return found
