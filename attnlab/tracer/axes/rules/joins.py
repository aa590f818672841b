"""Operations that make tensors out of numbers, put them together, repeat or pad them.

Those that only fill (zeros, rand, eye) need no rule: their axes are anonymous, as without one.
"""

from attnlab.tracer.axes.atoms import (
    DATA,
    Atom,
    Axes,
    Axis,
    anonymous,
    find,
    leaves,
    literal,
    part,
    root,
)
from attnlab.tracer.axes.engine import Flow
from attnlab.tracer.axes.op_call import Call, Tile, TracedTensor, by_name
from attnlab.tracer.axes.render_names import HEADS


def cat(flow: Flow, call: Call) -> TracedTensor:
    rank = len(call.shape)
    at = call.dim(1, 0, rank=rank)
    if call.name in ("hstack", "vstack", "dstack"):
        at = {"hstack": min(1, rank - 1), "vstack": 0, "dstack": 2}[call.name]
    full = [a for a in call.arrays if len(a.shape) == rank and a.shape[at] > 0]  # an empty cache
    axes: Axes = []
    for i, n in enumerate(call.shape):
        if i == at:
            axes.append(_joined(flow, [a.axes[i] for a in full], n, call))
            continue
        met: Axis = ()
        for a in full:
            met = flow.unify(met, a.axes[i], call)
        axes.append(met)
    arr = TracedTensor(call.shape, axes)
    copies, *rest = leaves(axes[at]) or (None,)
    heads = at < rank - 1 and any(_is_heads(flow, a) for a in rest)  # the last is their width
    if copies is not None and copies.kind == "tile" and heads:
        arr.tiled = Tile(call.row, copies)
    return arr


def _joined(flow: Flow, pieces: list[Axis], n: int, call: Call) -> Axis:
    """Pieces of one axis give it back; features make a feature; positions more positions."""
    full = [leaves(p) for p in pieces if leaves(p)]
    if len(pieces) == 1:
        return pieces[0]
    if not full:
        return (Atom(n, "free"),) if n != 1 else ()
    if len(full) == len(pieces) and all(p == full[0] for p in full):
        one = full[0][0]
        if one.kind == "batch" or _is_heads(flow, one):  # laid down several times
            return (Atom(len(pieces), "tile"), *full[0])
    known = [p[0] for p in full]
    whole = root(known[0])
    if whole.size == n and not whole.kids and all(root(a) is whole for a in known):
        return (whole,)
    return _longer_one(flow, pieces, known, n, call)


def _longer_one(flow: Flow, pieces: list[Axis], known: list[Atom], n: int, call: Call) -> Axis:
    kinds = {a.kind for p in pieces for a in leaves(p)}
    if kinds & DATA:
        data = next((a for a in known if a.kind in DATA), None)
        return (Atom(n, "joined", "+".join(flow.names.axis(p) for p in pieces), base=data),)
    if "feature" in kinds:
        made = flow.feature(n, call)
        if made and n == sum(a.size for a in known):
            made[0].name = known[0].name if len({a.name for a in known}) == 1 else made[0].name
        return made
    return (Atom(n, "count" if kinds == {"count"} else "free"),)


def stack(flow: Flow, call: Call) -> Axes:
    at = call.dim(1, 0, rank=len(call.shape))
    axes: Axes = [()] * (len(call.shape) - 1)
    for a in call.arrays:
        axes = [flow.unify(x, y, call) for x, y in zip(axes, a.axes, strict=True)]
    return [*axes[:at], literal(call.shape[at]), *axes[at:]]


def repeat(flow: Flow, call: Call) -> TracedTensor:
    """`repeat(g)` lays the whole axis down g times: the copies are the outer axis."""
    counts = call.arg(1, "repeats", call.arg(1, "dims"))
    counts = list(counts) if isinstance(counts, (list, tuple)) else list(call.args[1:])
    old: Axes = [*[()] * (len(counts) - len(call.x.axes)), *call.x.axes]
    axes, tiled = [], call.x.tiled
    for i, (axis, g) in enumerate(zip(old, counts, strict=True)):
        copies: Axis = (Atom(g, "tile"),) if g != 1 else ()
        axes.append((*copies, *axis))
        inner = i == len(old) - 1  # a head's width, if it is of a head at all
        if copies and not inner and any(_is_heads(flow, a) for a in leaves(axis)):
            tiled = Tile(call.row, copies[0])
    return TracedTensor(call.shape, axes, soft=call.x.soft, tiled=tiled)


def _is_heads(flow: Flow, atom: Atom) -> bool:
    atom = find(atom)
    name = flow.names.atom(atom)
    return atom.kind == "feature" and (name in HEADS or (atom.parent is not None and name != "hd"))


def interleave(flow: Flow, call: Call) -> Axes | None:
    """Each entry stands there g times in a row: the copies are the inner axis."""
    g, dim = call.arg(1, "repeats"), call.arg(2, "dim")
    if type(g) is not int or type(dim) is not int:
        return None
    axes = list(call.x.axes)
    at = dim % len(axes)
    axes[at] = (*axes[at], *((Atom(g, "tile"),) if g != 1 else ()))
    return axes


def pad(flow: Flow, call: Call) -> Axes:
    return [
        axis if before == after else _longer(flow, axis, after)
        for axis, before, after in zip(call.x.axes, call.x.shape, call.shape, strict=True)
    ]


def _longer(flow: Flow, axis: Axis, n: int) -> Axis:
    atoms = leaves(axis)
    if n == 1 or not atoms or sum(a.size for a in atoms) > n:
        return part(axis, n)
    kind = "joined" if any(a.kind in DATA for a in atoms) else atoms[0].kind
    name = f"{flow.names.axis(axis)}+{n - atoms[0].size}" if len(atoms) == 1 else ""
    return (Atom(n, kind, name, base=atoms[0], made="padded"),)


def count(flow: Flow, call: Call) -> Axes:
    """What runs along 0, 1, 2, ... stands for positions, entries or features."""
    return anonymous(call.shape, "count")


def outer(flow: Flow, call: Call) -> Axes:
    return [axis for arr in call.arrays for axis in arr.axes]


def meshgrid(flow: Flow, call: Call) -> list[Axes]:
    axes = outer(flow, call)
    if call.kwargs.get("indexing") == "xy" and len(axes) > 1:
        axes[:2] = axes[1::-1]
    return [list(axes) for _ in call.outs]


RULES = by_name(
    {
        count: "arange linspace logspace range",
        outer: "outer ger cartesian_prod",
        meshgrid: "meshgrid",
        cat: "cat concat concatenate hstack vstack dstack",
        stack: "stack",
        repeat: "repeat tile",
        interleave: "repeat_interleave",
        pad: "pad",
    }
)
