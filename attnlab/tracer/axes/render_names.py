"""Atoms read as names, once everything is known that can be known about them."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import combinations_with_replacement

from attnlab.sizes import UnknownSize, measure
from attnlab.tracer.axes.atoms import (
    DATA,
    LOOSE,
    Atom,
    Axis,
    collapsed,
    find,
    leaves,
    peer,
    size,
    top,
)

# Symbols for positions and entries: a layer makes none of these.
PLACES = {"B", "S", "T", "L", "Sq", "Sk", "M", "N", "P", "K", "Q"}
BATCH = {"B"}  # N counts tokens, nodes or slots as often
FEW = 4  # features: a piece this small is its number: q, k and v, or the two of a pair
PRODUCTS = {"2*D", "3*D", "4*D", "H*hd", "Hkv*hd"}
HEADS = ("H", "Hkv")
LAST = ("hd",)  # of two symbols of one size, what the last piece of a split is


class Symbols:
    """Reads sizes back as symbols: 24 is `3*D` where D is 8 and nothing else fits."""

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


@lru_cache(maxsize=64)
def _symbols(sizes: tuple[tuple[str, int], ...]) -> tuple[Symbols, Symbols, Symbols]:
    """Of all sizes, of those that layers make, and of those that the data has."""
    made = {s: n for s, n in sizes if s not in PLACES}
    return Symbols(dict(sizes)), Symbols(made), Symbols({s: n for s, n in sizes if s in PLACES})


@lru_cache(maxsize=64)
def _symbols_of_pieces(sizes: tuple[tuple[str, int], ...]) -> tuple[Symbols, Symbols]:
    """Of all sizes but the batch's, and of the lengths among them."""
    rest = {s: n for s, n in sizes if s not in BATCH}
    return Symbols(rest), Symbols({s: n for s, n in rest.items() if s in PLACES})


class Names:
    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.asked: set[int] = set()  # atoms whose name is being made
        self.final: dict[Axis, str] | None = None  # once no axis changes any more
        self.all, self.made, self.places = _symbols(tuple(sizes.items()))
        self.rest, self.lengths = _symbols_of_pieces(tuple(sizes.items()))

    def shape(self, axes: Sequence[Axis]) -> tuple[str, ...]:
        names = [self.axis(axis) for axis in axes]
        if len({*names}) == len(names):
            return tuple(names)
        for i, name in enumerate(names):
            if name in names[:i] and not name.isdigit():
                names[i] = self._marked(name)  # a copy that only turned out to be one later
        return tuple(names)

    def axis(self, axis: Axis) -> str:
        """`B`, `S'`, `3*D`, `H*hd`; the size itself where nothing better is known."""
        if self.final is None or self.asked:  # inside another name it may be cut short
            return self._axis(axis)
        if axis not in self.final:
            self.final[axis] = self._axis(axis)
        return self.final[axis]

    def _axis(self, axis: Axis) -> str:
        name, n = self._read(axis), size(axis)
        return name if self._is_size(name, n) else str(n)

    def _is_size(self, name: str, n: int) -> bool:
        """Whether a part of a width, or what a few are called, has that size here. Of others it is
        not known, and one name alone may stand for other sizes in other layers."""
        try:
            sure = "/" not in name and (n > FEW or name not in LAST)
            return sure or measure(name.replace("'", ""), self.made.sizes) == n
        except UnknownSize:
            return True

    def _read(self, axis: Axis) -> str:
        atoms = collapsed(axis)
        if not atoms:
            return "1"
        if len(atoms) == 1:
            return self.atom(atoms[0])
        if all(a.kind not in ("batch", "index", "joined") for a in atoms):
            whole = self._fit(size(atoms))
            if not whole.isdigit():
                return whole
        parts = [self.atom(a) for a in atoms]
        if all(p.isdigit() for p in parts):
            return self._single(size(atoms))
        return "*".join(map(_grouped, parts))

    def atom(self, atom: Atom) -> str:
        atom = find(atom)
        if id(atom) in self.asked:  # a copy of a copy of itself: nothing more is to be learnt
            return str(atom.size)
        self.asked.add(id(atom))
        try:
            name = self._atom(atom)
            half = name == "hd" and self.all.sizes.get("hd") == 2 * atom.size
            return "hd/2" if half else name  # of a head that is rotated in halves
        finally:
            self.asked.discard(id(atom))

    def _atom(self, atom: Atom) -> str:
        if atom.made == "prime" and atom.base is not None:
            return self._marked(self.axis(leaves((atom.base,))))
        if atom.kind == "feature":
            return self._feature(atom)
        if atom.made == "slice" and atom.base is not None:
            return self._slice(atom, atom.base)
        if atom.kind in LOOSE and atom.parent is None:
            return self._loose(atom)
        if atom.name:
            return atom.name
        whole = find(atom.parent) if atom.parent is not None else None
        return self._piece(atom, whole) if whole is not None else str(atom.size)

    def _marked(self, name: str) -> str:
        return name if name.isdigit() else f"{name}'"

    def _loose(self, atom: Atom) -> str:
        """What met nothing that has a name; a small number may well be just that number."""
        fit = self._single(atom.size)
        if fit in BATCH and atom.made == "weight":  # no parameter has an axis of the batch
            fit = str(atom.size)
        if atom.kind == "count" and fit in PLACES and self._is_part(atom.size):
            return str(atom.size)
        if fit.isdigit() and atom.kind in ("count", "table"):
            fit = self._counted(atom.size)
        few = atom.size <= FEW and atom.kind != "count"
        if atom.made == "literal" or few or fit.isdigit():
            return (not few and atom.name) or str(atom.size)
        return fit

    def _is_part(self, n: int) -> bool:
        """Whether a half or a quarter of a width, as frequencies have, is as large."""
        return any(width in (2 * n, 4 * n) for width in self.made.sizes.values())

    def _counted(self, n: int) -> str:
        """Distances run from -S to S, frequencies along half of a width."""
        twice, half = self.places.fit(n), self.made.fit(n)
        return twice if twice.startswith("2*") else half if half.endswith("/2") else str(n)

    # ------------------------------------------------------------ what layers make

    def _feature(self, atom: Atom) -> str:
        fit = self._fit(atom.size)
        if fit in self.made.sizes and self._may_be(atom, fit):
            return fit
        if self._is_few(atom):
            packed = {3: "qkv", 2: "kv"} if top(atom).name == "in_proj_weight" else {}
            return packed.get(atom.size, atom.name or str(atom.size))
        known = self._of_kids(atom) or self._by_place(atom) or atom.name
        if fit in self.made.sizes or fit.isdigit():
            return known or self._by_descent(atom)
        return fit if not known or known == atom.name else known

    def _fit(self, n: int) -> str:
        """What layers make of widths: D, 3*D, Hkv*hd. Other products fit by chance as often."""
        fit = self.made.fit(n)
        return fit if fit in self.made.sizes or fit in PRODUCTS else str(n)

    def _single(self, n: int) -> str:
        fit = self.all.fit(n)
        return fit if fit in self.all.sizes else str(n)

    def _may_be(self, atom: Atom, symbol: str) -> bool:
        """Heads are never the innermost piece of a split, and their width is never another."""
        if atom.parent is None:
            return True
        pieces = leaves((top(atom),))
        if find(pieces[-1]) is atom:
            return symbol not in HEADS
        return symbol not in LAST and (symbol not in HEADS or self._are_heads(atom, pieces))

    def _are_heads(self, atom: Atom, pieces: Axis) -> bool:
        """What stands behind them is a head's width; of two of that size the inner ones are."""
        width = self.made.sizes.get("hd")
        if width is not None and pieces[-1].size != width:
            return width % pieces[-1].size == 0 and pieces[-1].size < width
        return [p for p in pieces[:-1] if p.size == atom.size][-1:] == [atom]

    def _of_kids(self, atom: Atom) -> str:
        """`Hkv*hd`, and not `2*hd`, of what is later split so."""
        parts = [self.axis((k,)) for k in atom.kids]
        return "" if any(p.isdigit() for p in parts) else "*".join(parts)

    def _by_place(self, atom: Atom) -> str:
        """Of several symbols of one size, the one that may stand here."""
        same = [s for s, n in self.made.sizes.items() if n == atom.size]
        fits = [s for s in same if self._may_be(atom, s)]
        return fits[0] if fits and atom.parent is not None else ""

    def _by_descent(self, atom: Atom) -> str:
        friend = peer(atom)
        if friend is not atom and friend.name:
            return friend.name
        if self._beside_heads(atom):
            return "hd"
        if atom.base is not None:
            return self._slice(atom, atom.base)
        whole = atom.parent
        return self._piece(atom, find(whole)) if whole is not None else str(atom.size)

    @staticmethod
    def _beside_heads(atom: Atom) -> bool:
        """The last piece of a split whose other piece was lined up with heads."""
        whole = find(atom.parent) if atom.parent is not None else None
        if whole is None or find(whole.kids[-1]) is not atom:
            return False
        return any(peer(k).name in HEADS for k in whole.kids[:-1])

    @staticmethod
    def _is_few(atom: Atom) -> bool:
        """A small piece beside larger ones: its number says more than a fraction."""
        if atom.parent is None or atom.size > FEW:
            return False
        kids = [find(k) for k in find(atom.parent).kids]
        last = kids[-1] is atom
        return all(atom.size < k.size or (atom.size == k.size and last) or k is atom for k in kids)

    # ------------------------------------------------------------ parts of axes

    def _slice(self, atom: Atom, base: Atom) -> str:
        fit = self._symbols(atom).fit(atom.size)
        whole = self._whole(find(base))
        if fit in self.all.sizes:
            return fit
        if whole.isdigit():
            return str(atom.size)
        whole = _grouped(whole)
        gone = base.size - atom.size
        if 0 < gone <= max(FEW, base.size // 4) and gone != atom.size:
            return f"{whole}-{gone}"
        if atom.size and base.size % atom.size == 0 and base.size > atom.size:
            return f"{whole}/{base.size // atom.size}"
        return f"{whole}[:{atom.size}]" if gone else whole

    def _piece(self, atom: Atom, whole: Atom) -> str:
        fit = self._symbols(atom).fit(atom.size)
        if fit in self.all.sizes and (atom.kind != "feature" or self._may_be(atom, fit)):
            return fit
        name = self._whole(whole)
        return str(atom.size) if name.isdigit() else f"{_grouped(name)}/{whole.size // atom.size}"

    def _symbols(self, atom: Atom) -> Symbols:
        """A piece of positions is not as many as there are heads, though the number be the same,
        and only one of the batch can be a batch."""
        if atom.kind not in DATA:
            return self.rest
        return self.places if atom.kind == "batch" else self.lengths

    def _whole(self, atom: Atom) -> str:
        """The name of an atom, also of one that has been split."""
        return self.axis((atom,)) if not atom.kids else self.atom(atom)


def _grouped(name: str) -> str:
    """In parentheses where more is to be written behind a sum."""
    return f"({name})" if "+" in name or "-" in name else name
