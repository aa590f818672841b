"""Unify two axes that an operation lines up: elementwise, product or join."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnlab.tracer.axes.atoms import DATA, LOOSE, Atom, Axis, find, leaves, link_peers, root, split

if TYPE_CHECKING:
    from attnlab.tracer.axes.engine import Flow
    from attnlab.tracer.axes.op_call import Call

RANK = {"free": 0, "tile": 1, "count": 2, "table": 3}  # the looser one takes the other's name


def unify(flow: Flow, a: Axis, b: Axis, call: Call, how: str = "") -> Axis:
    """One axis of two that are lined up; an axis of size 1 gives way."""
    ours, theirs = leaves(a), leaves(b)
    if not ours or not theirs or ours == theirs:
        return ours or theirs
    for one, several in ((ours, theirs), (theirs, ours)):
        places = len(several) > 1 and all(x.kind == "index" for x in several)
        if places and [x.kind for x in one] == ["feature"]:  # as of pixels that are predicted
            return one
    left, right = list(ours), list(theirs)
    met: list[Atom] = []
    while left and right:
        p, q = left[0], right[0]
        if p.size == q.size:
            met.append(_unify_atoms(flow, p, q, call, how))
            del left[0], right[0]
        elif p.size % q.size == 0:
            left[:1] = split(p, (q.size, p.size // q.size))
        elif q.size % p.size == 0:
            right[:1] = split(q, (p.size, q.size // p.size))
        else:
            _report_order(flow, a, b, call)
            return (*met, *left)
    return (*met, *left, *right)


def _unify_atoms(flow: Flow, p: Atom, q: Atom, call: Call, how: str) -> Atom:
    p, q = find(p), find(q)
    if p is q or root(p) is root(q):
        return q if p.kind in LOOSE else p
    if p.kind in LOOSE and q.kind in LOOSE:
        low, high = (p, q) if (RANK[p.kind], p.name) <= (RANK[q.kind], q.name) else (q, p)
        high.name = high.name or low.name
        return _alias(low, high)
    if p.kind in LOOSE or q.kind in LOOSE:
        low, high = (p, q) if p.kind in LOOSE else (q, p)
        _check_table(flow, low, high, call)
        return _alias(low, high)
    if p.kind not in DATA and q.kind not in DATA:
        link_peers(p, q)
        return p
    if p.kind in DATA and q.kind in DATA and "joined" in (p.kind, q.kind):
        return _alias(p, q) if p.kind == "joined" else _alias(q, p)
    flow.report(call.row, "axes-meet", lambda: _different_axes_message(flow, p, q, call, how))
    return p


def take_name(axis: Axis, said: Axis) -> None:
    """An axis of one atom that is nothing known becomes the one that is said to be it."""
    (low,) = leaves(axis)
    if low.kind in LOOSE and said and low.size == said[0].size:
        _alias(low, find(said[0]))


def _alias(low: Atom, high: Atom) -> Atom:
    if root(high) is not low and find(high) is not low:
        low.alias = high
    return high


def _check_table(flow: Flow, low: Atom, high: Atom, call: Call) -> None:
    """Something that varies by position is laid along an axis."""
    table = low.kind in ("count", "table") and high.kind == "batch"
    if table and call.floats and call.name in ARITHMETIC and not _has_positions(low, call):
        flow.report(
            call.row, "position-on-batch", lambda: _table_on_batch_message(flow, high, call)
        )


def _has_positions(low: Atom, call: Call) -> bool:
    """What is counted along the batch has its positions on another axis: it counts entries."""
    if low.kind != "count":
        return False
    holders = [arr for arr in call.arrays if any(low in leaves(axis) for axis in arr.axes)]
    others = (a for arr in holders for axis in arr.axes for a in leaves(axis) if a is not low)
    return any(atom.kind in ("index", "count") for atom in others)


TAKING = {"gather", "take_along_dim", "getitem", "setitem", "index_select"}
PRODUCTS = {"matmul", "bmm", "baddbmm", "einsum", "scaled_dot_product_attention"}
ARITHMETIC = {"add", "add_", "mul", "mul_", "sub", "radd", "rmul", "iadd", "imul"}


def _table_on_batch_message(flow: Flow, high: Atom, call: Call) -> str:
    name = flow.names.atom(high)
    return (
        f"{call.name} lays a table along the batch axis {name}: every entry of the batch gets "
        "another row of it, whatever else is in the batch"
    )


def _different_axes_message(flow: Flow, p: Atom, q: Atom, call: Call, how: str) -> str:
    one, other = flow.names.atom(p), flow.names.atom(q)
    shapes = " and ".join(f"({', '.join(flow.names.shape(a.axes))})" for a in call.arrays[:2])
    verb = how or f"{call.name} lines up"
    return (
        f"{verb} axis {one} ({p.size}) with axis {other} ({q.size}), in {shapes}: they count "
        "different things and fit only because their sizes are equal"
    )


def _report_order(flow: Flow, a: Axis, b: Axis, call: Call) -> None:
    """(B, H) met (H, B): the same number of entries in another order."""
    known = [x for x in (*leaves(a), *leaves(b)) if x.kind in ("batch", "index")]
    if call.name not in TAKING and (known or call.name in PRODUCTS):
        flow.report(
            call.row,
            "axes-order",
            lambda: (
                f"{call.name} lines up axis {flow.names.axis(a)} with axis "
                f"{flow.names.axis(b)}: as many entries, merged in another order"
            ),
        )
