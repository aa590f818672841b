"""Reshapes: the atoms of a tensor in row-major order, dealt out anew to other axes."""

import math
from collections.abc import Sequence
from functools import partial
from itertools import accumulate, pairwise
from operator import mul

from attnlab.tracer.axes.atoms import (
    DATA,
    Atom,
    Axes,
    Axis,
    anonymous,
    collapsed,
    find,
    leaves,
    peer,
    size,
    split,
    top,
)
from attnlab.tracer.axes.engine import Flow
from attnlab.tracer.axes.op_call import Call

ORDERED = {"batch", "index"}  # an axis of these is not cut by chance
UNSURE = {"free", "count", "table"}  # nobody said what these count: they may be meant to be cut
MADE = {"feature", "tile"}


def regroup(flow: Flow, axes: Axes, shape: Sequence[int], call: Call) -> Axes:
    """The axes of `shape`; where a boundary of it cuts an axis in the middle, that is told."""
    atoms = [a for axis in axes for a in leaves(axis)]
    before = [tuple(leaves(axis)) for axis in axes if leaves(axis)]
    todo, found = list(atoms), list[Axis]()
    old = {id(a) for a in atoms}
    for place, n in enumerate(shape):
        dealt = _deal(todo, n)
        if dealt is None:
            if not _channels_last(flow, before, shape, call):
                _cut(flow, axes, shape, atoms, call)
            return [*found, *_remaining_axes(todo, shape[place:])]
        found.append(dealt)
    if _channels_last(flow, before, shape, call):
        return found
    if any(id(a) not in old and a.kind in ORDERED for axis in found for a in axis):
        _swapped(flow, before, found, call)
    _joined(flow, found, axes, call, old)
    return found


def _deal(todo: list[Atom], n: int) -> Axis | None:
    """The first atoms that make up n entries, the last one split where that helps."""
    taken: list[Atom] = []
    while n > 1:
        if not todo:
            return None
        atom = todo[0]
        if n % atom.size == 0:
            taken.append(todo.pop(0))
            n //= atom.size
        elif atom.size % n == 0:
            head, tail = split(atom, (n, atom.size // n))
            todo[:1] = [tail]
            taken.append(head)
            n = 1
        else:
            return None
    return tuple(taken)


def _remaining_axes(todo: list[Atom], shape: Sequence[int]) -> Axes:
    """Axes behind a cut: anonymous, up to where whole atoms fit again from the right."""
    fresh = anonymous(shape)
    for place in reversed(range(len(shape))):
        taken, n = list[Atom](), shape[place]
        while todo and n % todo[-1].size == 0 and n > 1:
            n //= todo[-1].size
            taken.insert(0, todo.pop())
        if n > 1:
            return fresh
        fresh[place] = tuple(taken)
    return fresh


def _cut(flow: Flow, axes: Axes, shape: Sequence[int], atoms: Sequence[Atom], call: Call) -> None:
    if any(a.made == "padded" for a in atoms) or _shifted(axes, shape):
        return
    atom = _cut_atom(atoms, shape)
    around = _cut_atoms(atoms, shape)
    unsure = any(a.kind in UNSURE and not a.made for a in around)
    if not _torn(around) and (unsure or not any(a.kind in DATA for a in around)):
        return  # features are dealt out freely
    if atom is None:
        return
    flow.report(call.row, "reshape-cut", lambda: _cut_message(flow, axes, shape, atom, call))


def _torn(around: Sequence[Atom]) -> bool:
    """(H, X, hd) to (X, H*hd): the pieces of one split, with something else between them."""
    first, last = around[0], around[-1]
    inside = {id(top(a)) for a in around[1:-1]} - {id(top(first))}
    return first.parent is not None and bool(inside) and top(first) is top(last)


def _shifted(axes: Axes, shape: Sequence[int]) -> bool:
    """(S, 1+K) to (1+K, S), as a relative shift that begins with a column of zeros."""
    old = [(size(leaves(axis)), {a.kind for a in leaves(axis)}) for axis in axes]
    moved = [x for x, n in zip(old, shape, strict=False) if x[0] != n]
    swapped = len(old) == len(shape) and sorted(n for n, _ in old) == sorted(shape)
    kinds = {kind for _, found in moved for kind in found}
    return swapped and len(moved) == 2 and "joined" in kinds and not kinds - DATA - UNSURE


def _cut_atom(atoms: Sequence[Atom], shape: Sequence[int]) -> Atom | None:
    """The first atom that a boundary of the new shape goes through."""
    ends = list(accumulate((a.size for a in atoms), mul))
    for inner in accumulate(shape, mul):
        for atom, end in zip(atoms, ends, strict=True):
            start = end // atom.size
            if start < inner < end and (inner % start or end % inner):
                return atom
    return None


def _cut_atoms(atoms: Sequence[Atom], shape: Sequence[int]) -> list[Atom]:
    """The atoms between the boundaries that old and new shape have in common."""
    left, right = list(atoms), list(shape)
    while left and right and left[0].size == right[0]:
        left.pop(0)
        right.pop(0)
    while left and right and left[-1].size == right[-1]:
        left.pop()
        right.pop()
    return left


def _cut_message(flow: Flow, axes: Axes, shape: Sequence[int], atom: Atom, call: Call) -> str:
    name = flow.names.axis((atom,))
    names = ", ".join(flow.names.shape(axes))
    sizes = ", ".join(map(str, shape))
    return (
        f"{call.name} deals ({names}) out to ({sizes}) in the order of memory, which cuts axis "
        f"{name} ({atom.size}) in the middle: the shape is right, but entries of different rows "
        f"end up in one. Axes change places with transpose or permute, not with {call.name}"
    )


def _channels_last(flow: Flow, before: list[Axis], shape: Sequence[int], call: Call) -> bool:
    """(B, C, h, w) to (B, h*w, C), which is flattened and then transposed."""
    new = [n for n in shape if n != 1]
    at = len(new) - 2
    if at < 0 or len(before) < at + 2:
        return False
    channels, places = before[at], before[at + 1 :]
    sizes = [math.prod(a.size for a in axis) for axis in before]
    apart = math.prod(sizes[at + 1 :]) == new[at] != sizes[at] == new[at + 1]
    if sizes[:at] != new[:at] or not apart or {a.kind for a in channels} != {"feature"}:
        return False
    if not {a.kind for axis in places for a in axis} <= {"index", "free"}:
        return False
    names = [flow.names.axis(x) for x in before]
    flow.report(
        call.row,
        "reshape-cut",
        lambda: (
            f"{call.name} is used as a transpose: it turns ({', '.join(names)}) into places before "
            "channels without moving an entry. Use flatten and then transpose(-2, -1)"
        ),
    )
    return True


def _swapped(flow: Flow, before: list[Axis], found: Axes, call: Call) -> None:
    """Sizes that divide each other: (B, S) to (S, B) cuts S although it fits."""
    after = [axis for axis in found if leaves(axis)]
    old, new = (
        [math.prod(a.size for a in x) for x in before],
        [math.prod(a.size for a in x) for x in after],
    )
    if old == new or sorted(old) != sorted(new) or len(set(old)) < len(old):
        return
    moved = [x for x, y in zip(before, after, strict=True) if leaves(x) != leaves(y)]
    kinds = {a.kind for x in moved for a in x}
    if not kinds & ORDERED or kinds - ORDERED - {"feature"}:
        return
    names = [flow.names.axis(x) for x in before]
    flow.report(
        call.row,
        "reshape-cut",
        lambda: (
            f"{call.name} is used as a transpose: it turns ({', '.join(names)}) into sizes in "
            "another order without moving an entry, so rows are cut and joined anew. Use transpose "
            "or permute"
        ),
    )


def _joined(flow: Flow, found: Axes, axes: Axes, call: Call, old: set[int]) -> None:
    """Pieces of an axis of positions joined with a piece of another axis; heads after features.

    Only pieces that this very reshape cut: what was cut before is an axis of its own.
    """
    data = any(a.kind in DATA for axis in found for a in leaves(axis))  # a weight is laid out anew
    for axis in found:
        for a, b in pairwise(collapsed(axis)):
            if not {id(a), id(b)} <= old and _straddles(a, b, found):
                message = partial(_pieces_message, flow, axes, a, b, call)
                flow.report(call.row, "reshape-cut", message)
            elif data and _reversed(a, b):
                flow.report(call.row, "merge-order", partial(_order_message, flow, a, b, call))


def _straddles(a: Atom, b: Atom, found: Axes) -> bool:
    """The end of one axis and the beginning of another, neither of them whole."""
    if not _is_piece(b, last=False) or find(b.parent or b) is find(a.parent or a):
        return False
    if _is_piece(a, last=True) and a.kind in ORDERED:
        return True
    return b.kind in ORDERED and a.kind in {*MADE, "free"} and _goes_on(b, found)


def _goes_on(piece: Atom, found: Axes) -> bool:
    """The rest of the axis that a piece was cut from is joined with what stands behind it."""
    rest = leaves((find(piece.parent or piece),))[-1]
    return any(rest in axis and axis[-1] is not rest for axis in map(leaves, found))


def _is_piece(atom: Atom, last: bool) -> bool:
    whole = find(atom.parent) if atom.parent is not None else None
    return whole is not None and bool(whole.kids) and find(whole.kids[-1 if last else 0]) is atom


def _pieces_message(flow: Flow, axes: Axes, a: Atom, b: Atom, call: Call) -> str:
    names = ", ".join(flow.names.shape(axes))
    return (
        f"{call.name} of ({names}) joins a piece of one axis ({flow.names.atom(a)}) with a "
        f"piece of another ({flow.names.atom(b)}): the shape is right, but entries of "
        "different rows end up in one. Transpose first, so that whole axes are joined"
    )


def _reversed(a: Atom, b: Atom) -> bool:
    """(hd, H) where the split was (H, hd): a stands behind b, or what a was lined up with does."""
    pieces = _pieces_of(b)
    if b.parent is None or {a.kind, b.kind} != {"feature"} or b not in pieces:
        return False
    return peer(a) in [peer(k) for k in pieces[pieces.index(b) + 1 :]]


def _pieces_of(atom: Atom) -> Axis:
    """All that was split off together with a piece, in the order of the split."""
    return leaves((top(atom),))


def _order_message(flow: Flow, a: Atom, b: Atom, call: Call) -> str:
    first, second = flow.names.atom(b), flow.names.atom(a)
    pieces = _pieces_of(b)
    names = {first, second, *(flow.names.atom(k) for k in pieces if len(pieces) == 2)}
    outer = len(pieces) > 2 and pieces[0] is b
    if not outer and not {"H", "Hkv", "hd"} & names:
        return ""  # the two halves of pairs, which may be laid out in either order
    return (
        f"{call.name} merges {second} before {first}, but the axis was split as "
        f"({first}, {second}): the features come out in another order. Put {first} before "
        f"{second} with a transpose first"
    )
