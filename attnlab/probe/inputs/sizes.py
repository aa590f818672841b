"""Which sizes to probe.

Sizes decide which bugs can be seen: with S == hd or B == 1 many layouts are right by accident. So
every round but the example's draws pairwise different ones.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from math import gcd, lcm
from typing import TYPE_CHECKING

from attnlab.probe.source_text import LARGEST
from attnlab.sizes import Sizes, with_head_dim

if TYPE_CHECKING:
    from attnlab.records import Contract

ANY = "any other"  # symbol of a challenge's own, such as a window's width or a grid's rows
SYMBOLS = ("B", "S", "H", "hd", "Hkv", "Sq", "Sk", "T", "L", "V", "F", ANY)


def _row(*sizes: int) -> Sizes:
    """A size for each of the symbols, in their order."""
    return dict(zip(SYMBOLS, sizes, strict=True))


# Pairwise different and mostly prime, so that a size read back names its axis without doubt.
NAMING = {
    "B": 11,
    "S": 13,
    "H": 7,
    "hd": 20,
    "Sk": 17,
    "T": 19,
    "Sq": 23,
    "L": 29,
    "V": 53,
    "F": 59,
}
GROUPED = {"Hkv": 7, "H": 21}  # over NAMING where keys have heads of their own
ROUNDS = (
    _row(3, 7, 6, 5, 2, 9, 13, 17, 19, 23, 29, 4),
    _row(4, 9, 3, 12, 1, 6, 7, 17, 19, 23, 29, 3),
)
# More positions than a table or a mask that was made for a few.
LONG = _row(2, 37, 12, 6, 3, 31, 43, 17, 19, 23, 29, 15)
NARROW: Sizes = {"hd": 1, "D": 36}  # over LONG: squeeze() drops heads of width 1
ALIKE = 4  # even, for a width without heads
# One head, a wide one, in a batch that is cut up; D is that of modules without heads.
ALONE = _row(19, 5, 1, 66, 1, 6, 7, 17, 13, 23, 29, 2) | {"D": 258}
MANY, HEADS = 64, 16  # the largest batch or width, and number of heads, beyond a number of a source
BATCH, WIDE = 1024, 256  # the largest batch beyond a number, and width or block that is just one
LAST = 4  # samples in the last part of a batch that goes in parts: one may be like the first
MOST = 12  # rounds for the sake of such numbers
FAR = 1100  # up to here sizes go well beyond a number, else just over it, in one sequence and head
EDGE: Sizes = {"B": 1, "S": 1, "Sq": 1, "H": 1, "Hkv": 1}


def rounds(
    contract: Contract, draw: random.Random, numbers: tuple[int, ...] = (), narrow: bool = False
) -> list[Sizes]:
    """The example's sizes first, then drawn ones, those beyond the numbers that the source names,
    the edge B = S = 1, and the contract's own. With `narrow`, heads of one round have width 1, at
    which right code may lose more than float32 has."""
    example = with_head_dim(contract.sizes)
    long = {**LONG, **NARROW} if narrow else LONG
    usual = [
        _with_drawn_sizes(contract, f) for f in (*(_jittered(r, draw) for r in ROUNDS), ALONE, long)
    ]
    over = [beyond(n) for n in numbers if not _is_exceeded(n, usual, contract)]
    over += [_more_heads(n) for n in numbers if HEADS < n <= MANY and "H" in contract.vary]
    over += [_larger_batch(n) for n in numbers if MANY < n <= BATCH and "B" in contract.vary]
    over += [same for n in numbers if HEADS <= n <= WIDE for same in _exact_sizes(n)]
    more = [*(_with_drawn_sizes(contract, f) for f in over[:MOST]), _equal_sizes(contract)]
    drawn = [within(s) for s in (*usual, *more)] if contract.vary else []
    edge = [_replace_sizes(contract, EDGE)] if contract.vary else []
    extra = [with_head_dim({**contract.sizes, **p}) for p in contract.extra_sizes]
    found: list[Sizes] = []
    for some in (example, *drawn, *edge, *extra):
        sizes = tied(contract, some)
        if sizes not in found:
            found.append(sizes)
    return found


def beyond(number: int) -> Sizes:
    """Sizes above a number, for as many axes as take a reasonable time."""
    more, few = number + 1, 1 if number > FAR else 2
    long = more if number > FAR else more + number // 8  # the last of blocks is not all but empty
    wide, heads = more if number <= MANY else 5, more if number <= HEADS else few
    queries = {"S": long, "Sq": long, "Sk": long + 2, "T": 17, "L": long, "V": 23, "F": 29}
    width = {"H": heads, "hd": wide, "Hkv": 1, "D": 2 * wide}
    own = {"B": number + LAST if number <= MANY else few, ANY: more if number <= MANY else few}
    return {**own, **width, **queries}


def _more_heads(number: int) -> Sizes:
    """More heads than a number, so many that they have to be narrow."""
    return {**beyond(number), "B": 2, "S": 5, "Sq": 5, "Sk": 6, "H": number + 1, "hd": 2}


def _larger_batch(number: int) -> Sizes:
    """A larger batch than a number, of short sequences."""
    few = {"S": 5, "Sq": 5, "Sk": 6, "T": 5, "L": 5, "H": 2, "hd": 4, "D": 8, "Hkv": 1}
    return {**beyond(number), **few, "B": number + LAST, ANY: 3}


def _exact_sizes(number: int) -> Iterator[Sizes]:
    """Heads that are as wide as a number, and a sequence of twice as many positions: for code with
    a special case for a width, or for lengths that are multiples of a block."""
    short = {**beyond(4), "B": 2, "S": 5, "Sq": 5, "Sk": 6, "H": 2, ANY: 3}
    yield {**short, "hd": number, "D": 2 * number}
    if number > MANY:
        yield {**short, "hd": number + 1, "D": 2 * (number + 1)}
    yield {**short, "S": 2 * number, "Sq": 2 * number, "Sk": 2 * number, "hd": 5, "D": 10}


def _is_exceeded(number: int, usual: list[Sizes], contract: Contract) -> bool:
    """Whether sizes that are drawn anyway go beyond a number, each symbol's in one of them."""
    vary = {*contract.vary, "hd"} if "D" in contract.vary else set(contract.vary)
    over = beyond(number)
    symbols = [s for s, n in over.items() if n > number and s in vary]
    symbols += _own_symbols(contract) if over[ANY] > number else []
    return all(any(sizes.get(s, LARGEST + 1) > number for sizes in usual) for s in symbols)


def tied(contract: Contract, sizes: Sizes) -> Sizes:
    """With a cache, Sk is the number of keys so far: in a call that holds none yet, S."""
    if "Sk" not in sizes or "S" not in sizes or not counts_keys(contract):
        return sizes
    return {**sizes, "Sk": sizes["S"]}


def counts_keys(contract: Contract) -> bool:
    """Whether Sk is the number of keys that a cache holds after a call, not that of a context."""
    data = [i for i in contract.inputs if i.role == "data"]
    return contract.cache is not None and not any("Sk" in i.axes for i in data)


def within(sizes: Sizes) -> Sizes:
    """No more positions than M, which stands for the longest sequence a module takes."""
    longest = sizes.get("M")
    if longest is None:
        return sizes
    return {s: min(n, longest) if s in ("S", "Sk") else n for s, n in sizes.items()}


def naming(contract: Contract) -> Sizes | None:
    """Sizes at which every axis can be told from every other, or None when they are fixed."""
    sizes = _with_drawn_sizes(contract, NAMING | (GROUPED if "Hkv" in contract.sizes else {}))
    if any(s in contract.vary for s in contract.sizes):
        return tied(contract, sizes)
    return None


def _jittered(sizes: Sizes, draw: random.Random) -> Sizes:
    """Vary B and S a little, since the same sizes show the same bugs every time; no further, since
    most calls are made at these sizes."""
    return {**sizes, "B": sizes["B"] + draw.choice((0, 1)), "S": sizes["S"] + draw.choice((0, 4))}


def _with_drawn_sizes(contract: Contract, fresh: Mapping[str, int]) -> Sizes:
    """The example's sizes with the varying symbols replaced by sizes that nothing else has.

    D stays a multiple of H, H of Hkv, a width without heads is even, and what the contract says to
    be a multiple is one. Symbols that nobody knows
    get sizes near each other, now the first of two the larger one, now the second."""
    example, vary, times = contract.sizes, contract.vary, contract.multiples
    sizes = {s: n for s, n in with_head_dim(example).items() if s != "hd" or "D" not in example}
    kept = {"H", "Hkv"} if "D" not in vary or "H" not in vary else set()  # it may come to that
    taken = {n for s, n in sizes.items() if s not in vary or s in kept}
    for symbol in dict.fromkeys(("Hkv", *(s for s in fresh if s != "D"))):  # H depends on Hkv
        if symbol in vary and symbol in sizes and (symbol != "Hkv" or "H" in vary):
            step = sizes.get("Hkv", 1) if symbol == "H" else 2 if symbol == "hd" else 1
            sizes[symbol] = _take_free_size(fresh[symbol], lcm(step, times.get(symbol, 1)), taken)
    others = _own_symbols(contract)
    for symbol in reversed(others) if fresh.get(ANY, 0) % 2 else others:
        sizes[symbol] = _take_free_size(fresh.get(ANY, sizes[symbol]), times.get(symbol, 1), taken)
    if "D" in vary and "H" in sizes and "D" in sizes:
        sizes["D"] = sizes["H"] * _take_free_size(fresh["hd"], _width_step(contract, sizes), taken)
    elif "D" in vary and "D" in sizes:
        step = lcm(2, times.get("D", 1))
        sizes["D"] = _take_free_size(fresh.get("D", 6 * fresh["hd"]), step, taken)
    grouped = sizes.get("H", 0) % sizes.get("Hkv", 1) == 0
    if sizes.get("D", 0) % sizes.get("H", 1) or not grouped or not suits(contract, sizes):
        sizes |= {s: example[s] for s in ("D", "H", "Hkv") if s in sizes}
    return with_head_dim(sizes)


def _width_step(contract: Contract, sizes: Sizes) -> int:
    """What a head's width is a multiple of, so that the whole width is one, too."""
    whole = contract.multiples.get("D", 1)
    return lcm(contract.multiples.get("hd", 1), whole // gcd(whole, sizes["H"]))


def suits(contract: Contract, sizes: Mapping[str, int]) -> bool:
    """Whether all sizes are the multiples that the contract names."""
    full = with_head_dim(sizes)
    return not any(full.get(s, 0) % times for s, times in contract.multiples.items())


def _own_symbols(contract: Contract) -> list[str]:
    """Symbols of the challenge's own that may vary."""
    known = {*NAMING, "D", "M", "Hkv"}
    return [s for s in contract.sizes if s in contract.vary and s not in known]


def _take_free_size(size: int, step: int, taken: set[int]) -> int:
    """The first multiple of `step` from `size` on that is not taken; takes it."""
    size += -size % step
    while size in taken:
        size += step
    taken.add(size)
    return size


def _equal_sizes(contract: Contract) -> Sizes:
    """One size for all axes that may vary: code that tells axes by their sizes confuses them."""
    example = contract.sizes
    known = {"B", "S", "Sq", "Sk", "H", "hd", *_own_symbols(contract)}
    free = known & set(contract.vary) & example.keys()
    wide = "D" in example
    if ALIKE % example.get("Hkv", 1) or (wide and not {"D", "H"} <= set(contract.vary)):
        free -= {"H", "hd"}
    sizes = {**example, **dict.fromkeys(free, ALIKE)}
    if wide and "H" in free:
        sizes["D"] = ALIKE * ALIKE
    return with_head_dim(sizes) if suits(contract, sizes) else with_head_dim(example)


def _replace_sizes(contract: Contract, fresh: Sizes) -> Sizes:
    changed = {s: n for s, n in fresh.items() if s in contract.vary and s in contract.sizes}
    sizes = {**contract.sizes, **changed}
    if "H" in sizes and sizes["H"] % sizes.get("Hkv", 1):
        sizes["H"] = contract.sizes["H"]
    return with_head_dim(sizes) if suits(contract, sizes) else with_head_dim(contract.sizes)
