"""Find the equality of sizes that a run depends on: "S == hd", "B == 1", "S a multiple of H".

At pairwise different sizes the run breaks; at those of the example it does not. So one relation
of the example at a time is restored. The one that fixes the run, and whose loss breaks it again
from either side, is the one it depends on. A limit (a table that ends), a size fixed by
design, a square grid: of all these some other size runs too, or none, so they are not blamed.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from attnlab.records import Contract
from attnlab.sizes import Sizes, with_head_dim

Broken = Callable[[Sizes], bool | None]  # None: at these sizes nothing can be said
WIDTHS = ("hd", "Hkv", "H", "D")  # these hang together: D = H * hd, and H is a multiple of Hkv
LIMITS = {"M", "V"}  # of what may be given, not sizes of what is given
OTHERS = (9, 16, 25, 36)  # squares and powers of two, which grids and blocks ask for
PRIMES = (11, 17)
# Pairwise different as well, and quick to run.
SMALL = {"Hkv": 3, "H": 12, "hd": 10, "D": 26, "B": 5, "S": 7, "Sk": 11, "T": 14, "Sq": 13}
ALONE = {"H": 3}  # heads that share no keys


class Relation(NamedTuple):
    """`left` is what is set; `right` a symbol, or "1"."""

    left: str
    right: str
    multiple: bool = False

    def shown(self, sizes: Sizes) -> str:
        """As it holds in the example: "S == hd (= 4)"."""
        a = value(self.left, sizes)
        if self.right == "1":
            return f"{self.left} == 1"
        if self.multiple:
            b = value(self.right, sizes)
            return f"{self.left} (= {a}) is a multiple of {self.right} (= {b})"
        return f"{self.left} == {self.right} (= {a})"


def find_relation(contract: Contract, distinct: Sizes, broken: Broken, strict: bool = True) -> str:
    """The relation that the example's run needs, in words; "" where no single one is found.

    `strict` asks that every other value breaks it again, for what might be a limit or by design.
    """
    example = with_head_dim(contract.sizes)
    movable = variable_symbols(contract)
    distinct = _smaller(distinct, movable, broken)
    for found in _candidates(example, movable):
        fixed = impose(distinct, found)
        if fixed is None or broken(fixed) is not False:
            continue
        if not strict or all(broken(s) for s in sizes_without(fixed, found, movable)):
            return found.shown(example)
    return ""


def variable_symbols(contract: Contract) -> list[str]:
    """Symbols that may take another size, those that nothing hangs on first."""
    have = with_head_dim(contract.sizes)
    free = [s for s in have if s in contract.vary and s not in WIDTHS and s not in LIMITS]
    wide = [s for s in WIDTHS if s in have and (s in contract.vary or (s, "D") == ("hd", "D"))]
    if "hd" in have and "hd" not in wide and "D" in contract.vary:
        wide.insert(0, "hd")
    return [*free, *wide, *(["H/Hkv"] if {"H", "Hkv"} <= {*wide} else [])]


def value(symbol: str, sizes: Sizes) -> int:
    if symbol == "H/Hkv":
        return sizes["H"] // sizes["Hkv"]
    return 1 if symbol == "1" else sizes[symbol]


def _smaller(distinct: Sizes, movable: list[str], broken: Broken) -> Sizes:
    """Other sizes at which it breaks in the same way, in less time."""
    less: Sizes | None = distinct
    wanted = SMALL if "Hkv" in distinct else SMALL | ALONE
    for symbol in wanted:
        if less is not None and symbol in movable and (symbol != "D" or "H" not in distinct):
            less = with_size(less, symbol, wanted[symbol])
    return less if less is not None and broken(less) else distinct


def _candidates(example: Sizes, movable: list[str]) -> Iterator[Relation]:
    """Equalities of the example first, then sizes of 1, then multiples."""
    free = [s for s in movable if s not in WIDTHS and s != "H/Hkv"]
    for i, a in enumerate(movable):
        for b in movable[i + 1 :]:
            if value(a, example) == value(b, example):
                yield Relation(a, b)
    for a in free:
        if example[a] == 1:
            yield Relation(a, "1")
    for a in free:
        for b in movable:
            top, step = value(a, example), value(b, example)
            if a != b and step > 1 and top > step and top % step == 0:
                yield Relation(a, b, multiple=True)


def impose(sizes: Sizes, relation: Relation) -> Sizes | None:
    """The sizes with the relation put back; None where it cannot be."""
    aim = value(relation.right, sizes)
    return with_size(sizes, relation.left, 3 * aim if relation.multiple else aim)


def with_size(sizes: Sizes, symbol: str, size: int) -> Sizes | None:
    """One symbol at another size, and with it what hangs on it."""
    if size < 1:
        return None
    new = {**sizes, symbol: size}
    if symbol == "H/Hkv":
        new = {**sizes, "H": sizes["Hkv"] * size}
    elif symbol == "Hkv" and "H" in sizes:
        new["H"] = size * (sizes["H"] // sizes["Hkv"])
    if "Hkv" in new and new.get("H", 0) % new["Hkv"]:
        return None
    if symbol == "D" and size % new.get("H", 1):
        return None
    if symbol != "D" and "D" in sizes and "H" in new and "hd" in new:
        new["D"] = new["H"] * new["hd"]
    return with_head_dim(new)


def sizes_without(fixed: Sizes, relation: Relation, movable: list[str]) -> Iterator[Sizes]:
    """The mended sizes with the relation lost again: by its left side, and by its right one."""
    held = value(relation.left, fixed)
    if relation.multiple:
        step = value(relation.right, fixed)
        sizes = [n for n in (held - 1, held + 1, *OTHERS) if n % step]
    else:
        sizes = [n for n in (held - 1, held + 1, 2 * held, *OTHERS) if n != held]
    yield from _sizes_with(fixed, relation.left, sizes)
    if relation.right in movable:
        now = value(relation.right, fixed)
        yield from _sizes_with(fixed, relation.right, [n for n in PRIMES if held % n and n != now])


def _sizes_with(sizes: Sizes, symbol: str, values: list[int]) -> Iterator[Sizes]:
    moved = (with_size(sizes, symbol, n) for n in values)
    yield from (other for other in moved if other is not None)
