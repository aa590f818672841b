"""Candidate places for the reference's weights: by name where it says something, else by shape and
by the order of definition.

Names of queries, keys and values bind: what is called `value` never takes the reference's keys. So
a module that mixes up its own queries and keys does not become right by a map that undoes it. Other
names (`beta`, `out`, `norm`) only make a place more or less likely: shapes and values decide.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate, pairwise, permutations
from math import prod
from typing import NamedTuple

from attnlab.probe.weights.arrangements import expressions
from attnlab.probe.weights.layouts import MEMBER, Shapes
from attnlab.probe.weights.names import WORD, number_ranks, word_stems, word_weights
from attnlab.probe.weights.stacked_layers import joined_groups, stacked_groups

LETTERS = {
    **dict.fromkeys(("q", "query", "queries", "wq", "bq", "qs", "toq"), "q"),
    **dict.fromkeys(("k", "key", "keys", "wk", "bk", "ks", "tok"), "k"),
    **dict.fromkeys(("v", "value", "values", "wv", "bv", "vs", "val", "tov"), "v"),
    **{f"{lead}{letters}": letters for lead in ("", "w", "b", "to") for letters in
       ("qkv", "kqv", "qvk", "kvq", "vqk", "vkq", "kv", "vk", "qk")},
}  # fmt: skip
OUT = {"o", "wo", "bo", "out", "output", "unify", "unifyheads", "merge"}
WEAK = {"proj", "dense", "c", "attn", "attention", "self", "mha"}  # alone they mean "out"
NORM = {"norm", "ln", "layernorm", "rms", "rmsnorm"}
# Parameters of a norm; the layer may be called anything.
AFFINE = {"gamma", "beta", "gain", "gains", "shift", "shifts"}
FEED = {"up", "down", "gate"}
INSIDE = {"mlp", "ffn", "ff", "feed"}  # where a projection is none of attention's
WEIGHT = {"weight", "weights", "kernel", "gamma", "gain", "gains", "scale", "w", "g", "matrix"}
BIAS = {"bias", "biases", "beta", "b", "shift", "shifts"}
WRITTEN = re.compile(r"(?P<layer>.*[^._])_(w|b|weight|bias)")  # a layer by hand: `up_w`, `up_b`
PAIR = 2  # words
UNLIKE = 0.3  # the cost of a name that shares no word
IN_ORDER = 1.1  # more than 1, so that layers that all stand elsewhere keep their order
FUSED = [("q", "k", "v"), ("k", "v"), ("q", "k", "v", "out")]  # where the name gives no order


class ParsedName(NamedTuple):
    """What a name says: "" where it says nothing."""

    role: str  # letters such as "q" or "qkv", "out", "norm", "normq", "up", ...
    kind: str  # "weight" or "bias"
    raw: bool  # no `weight` of a layer: a matrix that is likely stored transposed
    numbers: tuple[str, ...]

    @property
    def letters(self) -> str:
        """Of the queries, keys and values that the name is about."""
        return letters if set(letters := self.role.removeprefix("norm")) <= set("qkv") else ""


def parse_name(name: str) -> ParsedName:
    """The role and kind in a name: `blocks.1.attn.W_Q` is the weight of queries, number 1."""
    words = [w.lower() for w in WORD.findall(name)]
    letters = "".join(dict.fromkeys("".join(LETTERS.get(w, "") for w in words)))
    kinds = [("weight" if w in WEIGHT else "bias") for w in words if w in WEIGHT | BIAS]
    short = words[-1] if words and words[-1] in {*LETTERS, "wo", "bo"} else " "  # "wq"
    initial = {"w": "weight", "b": "bias"}.get(short[0], "")
    return ParsedName(
        role=_role(words, letters),
        kind=kinds[-1] if kinds else initial,
        raw=not name.endswith((".weight", "_weight")),
        numbers=tuple(w for w in words if w.isdecimal()),
    )


def _role(words: list[str], letters: str) -> str:
    known = set(words)
    feed = [w for w in words if w in FEED]
    named = words if len(words) == PAIR else words[-1:]  # gain_f, of the feed-forward part
    if known & NORM or known & AFFINE & set(named):
        return "norm" + letters
    if letters or feed or known & INSIDE:
        return letters or (feed[-1] if feed else "")
    if re.search(r"\b(in proj|c attn)\b", " ".join(words)):
        return "qkv"
    rest = known - WEIGHT - BIAS
    return "out" if known & OUT or (rest <= WEAK and rest & {"proj", "dense"}) else ""


class Piece(NamedTuple):
    """Part of the reference with one role: a parameter, or a third of a fused one."""

    expression: str
    parameter: str
    shape: tuple[int, ...]
    parsed: ParsedName
    order: int


class Slot(NamedTuple):
    """A parameter of the module, or a family of them: one for each head."""

    name: str  # the key of a map: `wq`, `heads.#.key.weight`
    shape: tuple[int, ...]
    parsed: ParsedName
    order: int
    per: str = ""  # the symbol that counts a family: H or Hkv
    words: tuple[tuple[str, float], ...] = ()  # of its name, and how much each says
    place: float = 0.0  # the order of what is at as many numbers from the start in the reference


class Option(NamedTuple):
    """A way to fill a slot: the pieces, the expression and its cost (high is unlikely)."""

    cost: float
    pieces: frozenset[int]
    expression: str
    layers: tuple[str, ...] = ()  # of the reference; a weight and its bias must agree


def layer_name(name: str) -> str:
    """The layer that owns a parameter: `out` of `out.bias` and `out_b`; "" where none does."""
    if written := WRITTEN.fullmatch(name):
        return written["layer"]
    return name.rpartition(".")[0] if _is_plain(name) or name.endswith((".w", ".g", ".b")) else ""


def _is_plain(name: str) -> bool:
    """Whether a name says surely if it is a weight or a bias: `offset_bias` may be a table."""
    last = name.rpartition(".")[2] if "." in name else ""
    return last in ("weight", "bias", "offset") or last in AFFINE


def pieces(
    theirs: Shapes, sizes: Mapping[str, int] | None = None, by: str = ""
) -> tuple[Piece, ...]:
    """The reference's parameters, with fused ones split into q, k and v: in one block each, or in
    one for each head, where `by` is the symbol that counts these."""
    heads = (sizes or {}).get(by, 0)
    found: list[Piece] = []
    ranks = number_ranks(theirs)
    for name, shape in theirs.items():
        parsed = parse_name(name)._replace(numbers=ranks[name])
        count = len(parsed.role) if set(parsed.role) <= set("qkv") else 1
        if count > 1 and shape and shape[0] % count == 0:
            part = (shape[0] // count, *shape[1:])
            each = f", {by}" if heads and part[0] % heads == 0 else ""
            for i, letter in enumerate(parsed.role):
                mine = parsed._replace(role=letter)
                found.append(
                    Piece(f"part({name}, {i}, {count}{each})", name, part, mine, len(found))
                )
        else:
            found.append(Piece(name, name, tuple(shape), parsed, len(found)))
    return tuple(found)


def slots(mine: Shapes, sizes: Mapping[str, int]) -> tuple[Slot, ...]:
    """The module's parameters, with those of separate heads collected into families."""
    found: dict[str, Slot] = {}
    families = {name: _family(name, mine, sizes) for name in mine}
    ranks = number_ranks({stem for stem, _ in families.values()})
    for name, shape in mine.items():
        stem, count = families[name]
        parsed = parse_name(stem)._replace(numbers=ranks[stem])
        if re.sub(r"b$", "a", name) in mine.keys() - {name}:  # the second of two, and no bias
            parsed = parsed._replace(kind="")
        found.setdefault(stem, Slot(stem, tuple(shape), parsed, len(found), count))
    often = Counter(word for stem in found for word in word_stems(stem))
    return tuple(
        slot._replace(words=word_weights(slot.name, often, LETTERS)) for slot in found.values()
    )


def _family(name: str, mine: Shapes, sizes: Mapping[str, int]) -> tuple[str, str]:
    """The key and the counting symbol of a family: `heads.#.key.weight` and H if there are H of
    them, each with a role of attention or an axis as wide as a head."""
    for number in re.finditer(r"(?<![^._])\d+(?![^._])", name):
        before, after = name[: number.start()], name[number.end() :]
        by_role = bool(set(parse_name(f"{after}.{before}").role) & set("qkvo"))
        for symbol in ("H", "Hkv"):
            count = sizes.get(symbol, 0)
            members = {mine.get(f"{before}{i}{after}") for i in range(count)}
            if count < 2 or len(members) > 1 or None in members:
                continue
            narrow = {n * sizes.get("hd", 0) for n in (1, 2, 3)} & set(mine[name])
            if f"{before}{count}{after}" not in mine and (by_role or narrow):
                return f"{before}{MEMBER}{after}", symbol
    return name, ""


# ---------------------------------------------------------------- how a slot may be filled


def all_options(
    open_slots: tuple[Slot, ...],
    parts: tuple[Piece, ...],
    sizes: Mapping[str, int],
    lists: int = 0,
) -> dict[str, list[Option]]:
    """The options of every slot; with `lists` 1 also the layers of a list in one where there are no
    others, with 2 everywhere. Where a layer called `q` cannot hold queries, its name is taken to
    mean something else."""
    open_slots = _at_places(open_slots, parts, sizes)
    found = {s.name: options(s, parts, sizes, lists) for s in open_slots}
    wrong = {layer_name(n) or n for n, slot_options in found.items() if not slot_options}
    for slot in open_slots:
        if (layer_name(slot.name) or slot.name) in wrong:
            anonymous = slot._replace(parsed=slot.parsed._replace(role=""))
            found[slot.name] = options(anonymous, parts, sizes, lists)
    return found


def _at_places(
    open_slots: tuple[Slot, ...], parts: tuple[Piece, ...], sizes: Mapping[str, int]
) -> tuple[Slot, ...]:
    """The slots with their places: three layers take as much room as one that holds all three."""
    ends = list(accumulate(prod(p.shape) for p in parts))
    room = [prod(s.shape) * (sizes.get(s.per, 1) if s.per else 1) for s in open_slots]
    starts = [0, *accumulate(room)]
    return tuple(
        slot._replace(place=(bisect_right(ends, start) + bisect_left(ends, start + size)) / 2)
        for slot, start, size in zip(open_slots, starts, room, strict=False)
    )


def without_lost_letters(
    parts: tuple[Piece, ...], open_slots: Iterable[Slot], sizes: Mapping[str, int]
) -> tuple[Piece, ...]:
    """The pieces, where letters say nothing that let no parameter hold one: the v of `pos_bias_v`
    is no value. What was split by its name and fits nowhere is whole again."""
    named = {p.order for p in parts if p.parsed.letters}
    placed = (
        order
        for slot in open_slots
        for option in (options(slot, parts, sizes, lists=2) if named else ())
        for order in option.pieces
    )
    lost = named.difference(placed)
    found = list[Piece]()
    for part in parts:
        beside = [p for p in parts if p.parameter == part.parameter]
        if len(beside) == 1 or not lost.issuperset(p.order for p in beside):
            said = "" if part.order in lost else part.parsed.role
            found.append(part._replace(parsed=part.parsed._replace(role=said)))
        elif part == beside[0]:  # the in_proj of a scan holds no queries, keys and values
            whole = sum(p.shape[0] for p in beside), *part.shape[1:]
            parsed = part.parsed._replace(role="")
            found.append(part._replace(expression=part.parameter, shape=whole, parsed=parsed))
    return tuple(p._replace(order=order) for order, p in enumerate(found))


def options(
    slot: Slot, parts: tuple[Piece, ...], sizes: Mapping[str, int], lists: int = 0
) -> list[Option]:
    """Every way to fill the slot that its name and shape allow, the likely ones first."""
    by_parameter = [p for p in parts if p.parameter == slot.name]
    fixed = [p for p in by_parameter if len(by_parameter) > 1 or p.shape == slot.shape]
    if fixed and _fused_shape(fixed) == slot.shape:  # same name and shape: the same parameter
        orders = frozenset(p.order for p in fixed)
        return [Option(0.0, orders, slot.name, _layers(tuple(fixed)))]
    groups = [(p,) for p in by_parameter]
    known = _by_cost(slot, [*groups, *_groups(slot, by_parameter)], sizes)
    usual = [*((p,) for p in parts), *_groups(slot, list(parts))]
    found = known or _by_cost(slot, usual, sizes)
    if not lists or (found and lists == 1):
        return found
    several = (*stacked_groups(slot, parts), *joined_groups(slot, parts))
    return known or _by_cost(slot, [*usual, *several], sizes)


def _by_cost(
    slot: Slot, groups: Iterable[tuple[Piece, ...]], sizes: Mapping[str, int]
) -> list[Option]:
    found: dict[tuple[frozenset[int], str], Option] = {}
    room = prod(slot.shape) * (sizes[slot.per] if slot.per else 1)
    for group in groups:
        fits = sum(prod(piece.shape) for piece in group) == room
        cost = _cost(slot, group) if fits else None
        if cost is None:
            continue
        orders = frozenset(p.order for p in group)
        for extra, expression in expressions(slot, group, sizes):
            option = Option(cost + extra, orders, expression, _layers(group))
            found.setdefault((orders, expression), option)
    return sorted(found.values(), key=lambda o: o.cost)


def _layers(group: tuple[Piece, ...]) -> tuple[str, ...]:
    """Which layers of the reference, and which part of each where they are fused."""
    named = [(layer_name(p.parameter), p.expression.replace(p.parameter, "")) for p in group]
    return tuple(f"{stem} {part}" for stem, part in named) if all(n for n, _ in named) else ()


def _fused_shape(fixed: list[Piece]) -> tuple[int, ...]:
    return (sum(p.shape[0] for p in fixed), *fixed[0].shape[1:]) if fixed[0].shape else ()


def _groups(slot: Slot, parts: list[Piece]) -> Iterator[tuple[Piece, ...]]:
    """Pieces that one fused parameter may hold: of one kind, in the order of the name."""
    letters = slot.parsed.letters
    orders = [tuple(letters)] if len(letters) > 1 else FUSED
    for roles in () if len(letters) == 1 else orders:
        columns = [[p for p in parts if p.parsed.role == role] for role in roles]
        for first in columns[0]:
            group = [first]
            for column in columns[1:]:
                alike = [p for p in column if _same_kind(p, first)]
                beside = [p for p in alike if _module_around(p) == _module_around(first)]
                group += (beside or alike)[:1]
            if len(group) == len(roles):
                yield tuple(group)
                yield from _beside_feed(slot, tuple(group), parts)
    if not letters:  # two halves that no name tells of: a gate and what it opens
        size = prod(slot.shape)
        halves = [p for p in parts if 2 * prod(p.shape) == size and not p.parsed.letters]
        yield from (
            (a, b)
            for a, b in permutations(halves, 2)
            if a.shape == b.shape
            and _module_around(a) == _module_around(b)
            and (a.parsed.kind == b.parsed.kind or _is_of_one_layer(a, b))
        )


def _is_of_one_layer(a: Piece, b: Piece) -> bool:
    return "" != layer_name(a.parameter) == layer_name(b.parameter)


def _beside_feed(
    slot: Slot, group: tuple[Piece, ...], parts: list[Piece]
) -> Iterator[tuple[Piece, ...]]:
    """Attention's projections with those of the feed-forward part that runs beside it."""
    left = prod(slot.shape) - sum(prod(p.shape) for p in group)
    others = [p for p in parts if left and not p.parsed.letters and _same_kind(p, group[0])]
    for many in (1, PAIR):
        for fed in permutations([p for p in others if many * prod(p.shape) == left], many):
            if len({_module_around(p) for p in fed}) == 1:
                yield (*group, *fed)
                yield (*fed, *group)


def _module_around(piece: Piece) -> str:
    """The module that holds the layer of a parameter: `layers.0.ffn` of `layers.0.ffn.w1.weight`"""
    return (layer_name(piece.parameter) or piece.parameter).rpartition(".")[0]


def _same_kind(a: Piece, b: Piece) -> bool:
    kinds = ((p.parsed.kind, p.parsed.numbers, p.shape[1:]) for p in (a, b))
    return next(kinds) == next(kinds)


def _cost(slot: Slot, group: tuple[Piece, ...]) -> float | None:
    """How unlikely it is that the slot holds these pieces; None where the name rules it out."""
    mine, theirs = slot.parsed, group[0].parsed
    role = "".join(dict.fromkeys(p.parsed.role for p in group))
    letters = "".join(dict.fromkeys(p.parsed.letters for p in group))
    if mine.letters and letters and mine.letters != letters:
        return None
    if mine.kind and theirs.kind and mine.kind != theirs.kind and _is_plain(slot.name):
        return None
    moved = 0.02 * min(
        float((sum(abs(place - p.order) for p in group) / len(group)) ** IN_ORDER)
        for place in (slot.order, slot.place)
    )
    by_name = _difference(mine.role, role, 1.0) + _difference(mine.kind, theirs.kind, 0.3)
    apart = 0 if letters else max((_words_apart(a, b) for a, b in pairwise(group)), default=0)
    if len(group) > PAIR:  # in the order in which they are defined
        apart = sum(a.order > b.order for a, b in pairwise(group))
    other = len(group) == 1 and mine.numbers != theirs.numbers
    shared = frozenset().union(*(word_stems(p.parameter) for p in group))
    unlike = sum(weight for stem, weight in slot.words if stem not in shared)
    return by_name + moved + 0.1 * apart + float(other) + UNLIKE * unlike


def _words_apart(a: Piece, b: Piece) -> int:
    """How many words only one of two names has: layers that belong together differ in one, those of
    a list in none but a number. A layer's own weight comes before its bias."""
    if _is_of_one_layer(a, b):
        return int(a.order > b.order)
    words = ({w for w in WORD.findall(p.parameter) if not w.isdecimal()} for p in (a, b))
    return len(next(words) ^ next(words))


def _difference(mine: str, theirs: str, unknown: float) -> float:
    """What it costs that a name says nothing, or something else."""
    return unknown if not (mine and theirs) else 0.0 if mine == theirs else 1.5 * unknown
