"""Which parameter of a module may be which of the reference's: by name where it says something,
else by shape and by the order of definition.

A name that says something binds: what is called `value` never takes the reference's keys. So a
module that mixes up its own queries and keys does not become right by a map that undoes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import permutations
from typing import NamedTuple

from attnlab.probe.weights.layouts import MEMBER, Shapes

LETTERS = {
    **dict.fromkeys(("q", "query", "queries", "wq", "bq", "qs", "toq"), "q"),
    **dict.fromkeys(("k", "key", "keys", "wk", "bk", "ks", "tok"), "k"),
    **dict.fromkeys(("v", "value", "values", "wv", "bv", "vs", "val", "tov"), "v"),
    **{f"{lead}{letters}": letters for lead in ("", "w", "b", "to") for letters in
       ("qkv", "kqv", "qvk", "kvq", "vqk", "vkq", "kv", "vk", "qk")},
}  # fmt: skip
OUT = {"o", "wo", "bo", "out", "output", "unify", "unifyheads", "merge"}
WEAK = {"proj", "dense", "c", "attn", "attention", "self", "mha"}  # alone they say "out"
NORM = {"norm", "ln", "layernorm", "rms", "rmsnorm", "gamma", "beta", "gain"}
FEED = {"up", "down", "gate"}
INSIDE = {"mlp", "ffn", "ff", "feed"}  # where a projection is none of attention's
WEIGHT = {"weight", "kernel", "gamma", "gain", "scale", "w", "g", "matrix"}
BIAS = {"bias", "beta", "b"}
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


class Tag(NamedTuple):
    """What a name says: "" where it says nothing."""

    role: str  # letters such as "q" or "qkv", "out", "norm", "normq", "up", ...
    kind: str  # "weight" or "bias"
    raw: bool  # no `weight` of a layer: a matrix that is likely kept the other way around
    numbers: tuple[str, ...]


def tag(name: str) -> Tag:
    """`blocks.1.attn.W_Q` is the weight of queries, number 1."""
    words = [w.lower() for w in WORD.findall(name)]
    letters = "".join(dict.fromkeys("".join(LETTERS.get(w, "") for w in words)))
    kinds = [("weight" if w in WEIGHT else "bias") for w in words if w in WEIGHT | BIAS]
    short = words[-1] if words and words[-1] in {*LETTERS, "wo", "bo"} else " "  # "wq"
    initial = {"w": "weight", "b": "bias"}.get(short[0], "")
    return Tag(
        role=_role(words, letters),
        kind=kinds[-1] if kinds else initial,
        raw=not name.endswith((".weight", "_weight")),
        numbers=tuple(w for w in words if w.isdecimal()),
    )


def _role(words: list[str], letters: str) -> str:
    said = set(words)
    feed = [w for w in words if w in FEED]
    if said & NORM:
        return "norm" + letters
    if letters or feed or said & INSIDE:
        return letters or (feed[-1] if feed else "")
    if re.search(r"\b(in proj|c attn)\b", " ".join(words)):
        return "qkv"
    rest = said - WEIGHT - BIAS
    return "out" if said & OUT or (rest <= WEAK and rest & {"proj", "dense"}) else ""


class Piece(NamedTuple):
    """A part of the reference that has one role: a parameter, or a third of a fused one."""

    expression: str
    parameter: str
    shape: tuple[int, ...]
    tag: Tag
    order: int


class Slot(NamedTuple):
    """A parameter of the module, or a family of them: one for each head."""

    name: str  # the key of a map: `wq`, `heads.#.key.weight`
    shape: tuple[int, ...]
    tag: Tag
    order: int
    per: str = ""  # the symbol that counts a family: H or Hkv


class Option(NamedTuple):
    """A way to fill a slot: from which pieces, by which expression, and how far-fetched."""

    cost: float
    pieces: frozenset[int]
    expression: str
    layers: tuple[str, ...] = ()  # of the reference; a weight and its bias come from the same


def layer(name: str) -> str:
    """`out_proj` of `out_proj.bias`; "" of a parameter that stands alone."""
    stem, _, last = name.rpartition(".")
    return stem if last in ("weight", "bias") else ""


def pieces(theirs: Shapes) -> tuple[Piece, ...]:
    """The reference's parameters, the fused ones cut into their parts."""
    found: list[Piece] = []
    for name, shape in theirs.items():
        said = tag(name)
        count = len(said.role) if set(said.role) <= set("qkv") else 1
        if count > 1 and shape and shape[0] % count == 0:
            part = (shape[0] // count, *shape[1:])
            for i, letter in enumerate(said.role):
                mine = Tag(role=letter, kind=said.kind, raw=said.raw, numbers=said.numbers)
                found.append(Piece(f"part({name}, {i}, {count})", name, part, mine, len(found)))
        else:
            found.append(Piece(name, name, tuple(shape), said, len(found)))
    return tuple(found)


def slots(mine: Shapes, sizes: Mapping[str, int]) -> tuple[Slot, ...]:
    """The module's parameters, those of separate heads gathered into families."""
    found: dict[str, Slot] = {}
    for name, shape in mine.items():
        stem, count = _family(name, mine, sizes)
        said = tag(stem)
        found.setdefault(stem, Slot(stem, tuple(shape), said, len(found), count))
    return tuple(found.values())


def _family(name: str, mine: Shapes, sizes: Mapping[str, int]) -> tuple[str, str]:
    """`heads.3.key.weight` is `heads.#.key.weight`, counted by H, where there are H of them."""
    for number in re.finditer(r"(?<![^._])\d+(?![^._])", name):
        before, after = name[: number.start()], name[number.end() :]
        for symbol in ("H", "Hkv"):
            count = sizes.get(symbol, 0)
            members = [f"{before}{i}{after}" for i in range(count)]
            alone = f"{before}{count}{after}" not in mine
            same = len({mine.get(m) for m in members}) == 1 and members[0] in mine
            if count > 1 and alone and same and set(tag(f"{after}.{before}").role) & set("qkvo"):
                return f"{before}{MEMBER}{after}", symbol
    return name, ""


# ---------------------------------------------------------------- how a slot may be filled


def options(slot: Slot, parts: tuple[Piece, ...], sizes: Mapping[str, int]) -> list[Option]:
    """Every way to fill the slot that its name and shape allow, the likely ones first."""
    by_parameter = [p for p in parts if p.parameter == slot.name]
    fixed = [p for p in by_parameter if len(by_parameter) > 1 or p.shape == slot.shape]
    if fixed and _whole(fixed) == slot.shape:  # same name, same shape: it is what it says
        orders = frozenset(p.order for p in fixed)
        return [Option(0.0, orders, slot.name, _layers(tuple(fixed)))]
    allowed = by_parameter or list(parts)
    found: dict[tuple[frozenset[int], str], Option] = {}
    for group in (*((p,) for p in allowed), *_groups(slot, allowed)):
        cost = _likeness(slot, group)
        if cost is None:
            continue
        orders = frozenset(p.order for p in group)
        for extra, expression in _ways(slot, group, sizes):
            option = Option(cost + extra, orders, expression, _layers(group))
            found.setdefault((orders, expression), option)
    return sorted(found.values(), key=lambda o: o.cost)


def _layers(group: tuple[Piece, ...]) -> tuple[str, ...]:
    """Which layers of the reference, and which part of each where they are fused."""
    named = [(layer(p.parameter), p.tag.role) for p in group]
    return tuple(f"{stem} {role}" for stem, role in named) if all(n for n, _ in named) else ()


def _whole(fixed: list[Piece]) -> tuple[int, ...]:
    return (sum(p.shape[0] for p in fixed), *fixed[0].shape[1:]) if fixed[0].shape else ()


def _groups(slot: Slot, parts: list[Piece]) -> Iterator[tuple[Piece, ...]]:
    """Pieces that one fused parameter may hold: q, k, v of the same kind, in the order named."""
    role = slot.tag.role
    wanted = [role] if len(role) > 1 and set(role) <= set("qkv") else ["qkv", "kv"]
    if role and role not in wanted:
        return
    for letters in wanted:
        columns = [[p for p in parts if p.tag.role == letter] for letter in letters]
        for first in columns[0]:
            group = [first]
            for column in columns[1:]:
                group += [p for p in column if _kin(p, first)][:1]
            if len(group) == len(letters):
                yield tuple(group)


def _kin(a: Piece, b: Piece) -> bool:
    return (a.tag.kind, a.tag.numbers, a.shape[1:]) == (b.tag.kind, b.tag.numbers, b.shape[1:])


def _likeness(slot: Slot, group: tuple[Piece, ...]) -> float | None:
    """How far-fetched it is that the slot holds these pieces; None where a name forbids it."""
    role, mine = "".join(p.tag.role for p in group), slot.tag
    theirs = group[0].tag
    if mine.role and role and mine.role != role:
        return None
    if mine.kind and theirs.kind and mine.kind != theirs.kind:
        return None
    unknown = float(not (mine.role and role)) + 0.3 * (not (mine.kind and theirs.kind))
    moved = 0.02 * sum(abs(slot.order - p.order) for p in group)
    return unknown + moved + float(mine.numbers != theirs.numbers)


def _ways(
    slot: Slot, group: tuple[Piece, ...], sizes: Mapping[str, int]
) -> Iterator[tuple[float, str]]:
    """Expressions of the slot's shape that hold the group's elements."""
    for start, terms in _members(slot, group, sizes):
        shapes = [shape for _, shape in terms]
        for cost, expression, shape, cut in _joined([t for t, _ in terms], shapes, sizes):
            heads = () if slot.per else tuple(s for s in ("H", "Hkv") if s in sizes)
            for more, way in _turned((expression, shape), cut, slot, heads, sizes):
                yield start + cost + more, way


Typed = tuple[str, tuple[int, ...]]  # an expression and the shape it has at the search's sizes


def _members(
    slot: Slot, group: tuple[Piece, ...], sizes: Mapping[str, int]
) -> Iterator[tuple[float, list[Typed]]]:
    """The pieces, or what one head has of each: some of the rows, or some of the columns."""
    if not slot.per:
        yield 0.0, [(p.expression, p.shape) for p in group]
        return
    n = sizes[slot.per]
    if all(p.shape and p.shape[0] % n == 0 for p in group):
        rows = [(f"part({p.expression}, #, {slot.per})", p.shape) for p in group]
        yield 0.0, [(e, (s[0] // n, *s[1:])) for e, s in rows]
    if all(len(p.shape) == 2 and p.shape[1] % n == 0 for p in group):
        columns = [(f"t(part(t({p.expression}), #, {slot.per}))", p.shape) for p in group]
        yield 0.1, [(e, (s[0], s[1] // n)) for e, s in columns]


def _joined(
    terms: list[str], shapes: list[tuple[int, ...]], sizes: Mapping[str, int]
) -> Iterator[tuple[float, str, tuple[int, ...], int | None]]:
    """Fused pieces side by side, stacked or head by head; which axis heads can be cut out of."""
    if len(terms) == 1:
        yield 0.0, terms[0], shapes[0], -1
        return
    inside = ", ".join(terms)
    rows = sum(s[0] for s in shapes)
    yield 0.0, f"cat({inside})", (rows, *shapes[0][1:]), None
    if len(set(shapes)) > 1:
        return
    yield 0.0, f"stack({inside})", (len(terms), *shapes[0]), 1
    if "H" in sizes and shapes[0][0] % sizes["H"] == 0:
        yield 0.2, f"interleave(H, {inside})", (rows, *shapes[0][1:]), 0


def _turned(
    typed: Typed, cut: int | None, slot: Slot, heads: tuple[str, ...], sizes: Mapping[str, int]
) -> Iterator[tuple[float, str]]:
    """The expression with its axes in another order, heads as an axis of their own, ones added."""
    if typed[1] == slot.shape and 1 in slot.shape:
        yield 0.0, typed[0]
        return
    core = tuple(n for n in slot.shape if n != 1)
    cuts = list(_cuts(typed, cut, heads, sizes))
    if slot.tag.role == "out":  # it takes what heads give: they lie along its last axis
        cuts.reverse()
    for far, (expression, shape) in enumerate((typed, *cuts)):
        if sorted(shape) != sorted(core):
            continue
        for turns, order in enumerate(permutations(range(len(shape)))):
            if tuple(shape[axis] for axis in order) == core:
                likely = slot.tag.raw == bool(turns) if len(shape) == 2 else True
                cost = 0.03 * far + (0.0 if likely else 0.1 if slot.tag.raw else 0.3)
                yield cost, _with_ones(_reordered(expression, order), slot.shape)


def _cuts(
    typed: Typed, cut: int | None, heads: tuple[str, ...], sizes: Mapping[str, int]
) -> Iterator[Typed]:
    expression, shape = typed
    axes = () if cut is None else range(len(shape)) if cut < 0 else (cut,)
    for axis in axes:
        for symbol in heads:
            n = sizes[symbol]
            if 1 < n < shape[axis] and shape[axis] % n == 0:
                cut_shape = (*shape[:axis], n, shape[axis] // n, *shape[axis + 1 :])
                yield f"split({expression}, {axis}, {symbol})", cut_shape


def _reordered(expression: str, order: tuple[int, ...]) -> str:
    if order == tuple(range(len(order))):
        return expression
    if order == (1, 0):
        return f"t({expression})"
    return f"permute({expression}, {', '.join(map(str, order))})"


def _with_ones(expression: str, shape: tuple[int, ...]) -> str:
    for axis, n in enumerate(shape):
        expression = f"unsqueeze({expression}, {axis})" if n == 1 else expression
    return expression
