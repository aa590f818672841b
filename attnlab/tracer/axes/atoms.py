"""Atoms: the smallest pieces of axes that keep an identity while a model moves them about.

An axis is a tuple of atoms in row-major order; an axis of size 1 has none. Splitting an atom gives
it kids, which stand in its place from then on, wherever it stood; an anonymous atom that meets a
known one becomes its alias. Both are kept in the atom itself, so that what is learnt later also
names the rows before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

# batch and index: axes of the data, as the user names them. feature: made by a layer. free: made by
# a factory or a weight, takes the name of what it meets. count: what arange counts along. table:
# cut out of a weight or a buffer, as position tables are. tile: made by repeating. joined: made by
# joining or padding pieces along an index.
Kind = Literal["batch", "index", "feature", "free", "count", "table", "tile", "joined"]
LOOSE = {"free", "count", "table", "tile"}  # kinds that take the name of what they meet
DATA = {"batch", "index", "joined"}  # kinds that must not meet a feature


class Atom:
    __slots__ = ("alias", "base", "kids", "kind", "made", "name", "parent", "peer", "size")

    def __init__(
        self,
        size: int,
        kind: Kind = "free",
        name: str = "",
        base: Atom | None = None,
        parent: Atom | None = None,
        made: str = "",
    ) -> None:
        self.size = size
        self.kind: Kind = kind
        self.name = name  # what the user or the layer calls it, "" where nobody does
        self.base = base  # what it is a second copy or a slice of
        self.parent = parent  # what it is a piece of
        self.kids: tuple[Atom, ...] = ()
        self.alias: Atom | None = None
        self.peer: Atom | None = None  # a feature that it was lined up with
        self.made = made  # how: "prime", "slice", "literal", "copies", "over", "weight"


Axis = tuple[Atom, ...]
Axes = list[Axis]


def find(atom: Atom) -> Atom:
    """The atom that this one has become."""
    while atom.alias is not None:
        atom = atom.alias
    return atom


def leaves(axis: Iterable[Atom]) -> Axis:
    """The atoms of an axis as they are now, split ones replaced by their pieces."""
    atoms = tuple(axis)
    for atom in atoms:
        if atom.alias is not None or atom.kids:
            break
    else:
        return atoms  # nothing has happened to them, as in most cases
    found: list[Atom] = []
    for atom in atoms:
        real = find(atom)
        found.extend(leaves(real.kids) if real.kids else (real,))
    return tuple(found)


def _last(atom: Atom, step: Callable[[Atom], Atom | None]) -> Atom:
    """The atom at the end of a way; a way that comes back to itself ends there."""
    seen: set[int] = set()
    atom = find(atom)
    while id(atom) not in seen:
        seen.add(id(atom))
        atom = find(step(atom) or atom)
    return atom


def root(atom: Atom) -> Atom:
    """What an atom is a copy, a slice or a piece of, in the end."""
    return _last(atom, lambda a: a.base or a.parent)


def top(atom: Atom) -> Atom:
    """The whole that a piece was split from, however often."""
    return _last(atom, lambda a: a.parent)


def stem(atom: Atom) -> Atom:
    """What an atom was sliced, padded or joined from; a primed copy is a stem of its own."""
    return _last(atom, lambda a: None if a.made == "prime" else a.base)


def origin(atom: Atom) -> Atom:
    """What an atom was sliced or split from; a primed copy is an origin of its own."""
    return _last(atom, lambda a: None if a.made == "prime" else a.base or a.parent)


def peer(atom: Atom) -> Atom:
    """One for all features that were lined up with each other: the heads of q, k and v."""
    return _last(atom, lambda a: a.peer)


def link_peers(a: Atom, b: Atom) -> None:
    one, other = peer(a), peer(b)
    if one is not other:
        other.peer = one


def size(axis: Iterable[Atom]) -> int:
    return math.prod(atom.size for atom in axis)


def split(atom: Atom, sizes: Sequence[int]) -> Axis:
    """Cuts an atom into pieces of the given sizes, once and for all."""
    atom = find(atom)
    atom.kids = tuple(Atom(n, atom.kind, parent=atom) for n in sizes)
    return atom.kids


def anonymous(shape: Sequence[int], kind: Kind = "free") -> Axes:
    return [(Atom(n, kind),) if n != 1 else () for n in shape]


def primed(axis: Axis) -> Axis:
    """A second copy of an axis, as the keys are beside the queries."""
    return tuple(Atom(a.size, a.kind, a.name, base=a, made="prime") for a in leaves(axis))


def literal(n: int) -> Axis:
    """As many as the code says: two that are stacked, the five largest."""
    return (Atom(n, made="literal"),) if n != 1 else ()


def part(axis: Axis, length: int) -> Axis:
    """A slice of an axis; what is cut out of a layer's features is a feature of its own."""
    if length == 1:
        return ()
    old = leaves(axis)
    if len(old) > 1 and size(old[1:]) == length:
        return old[1:]  # one of the outer ones: a head of (H, hd), a copy of (tile, B)
    kinds = {a.kind for a in old}
    if not old or kinds <= {"feature"}:
        return (Atom(length, "feature", base=old[0] if len(old) == 1 else None),)
    kind: Kind = old[0].kind if len(old) == 1 else "joined" if kinds & DATA else "free"
    name = old[0].name if len(old) == 1 else ""
    return (Atom(length, kind, name, base=old[0], made="slice"),)


def collapsed(axis: Axis) -> Axis:
    """The atoms with each full row of pieces put together again: (H, hd) of D is D."""
    found = list(leaves(axis))
    again = any(a.parent is not None for a in found)
    while again:
        again = False
        for i, atom in enumerate(found):
            whole = find(atom.parent) if atom.parent is not None else None
            if whole is None or not whole.kids or find(whole.kids[0]) is not atom:
                continue
            kids = [find(k) for k in whole.kids]
            if found[i : i + len(kids)] == kids:
                found[i : i + len(kids)] = [whole]
                again = True
                break
    return tuple(found)
