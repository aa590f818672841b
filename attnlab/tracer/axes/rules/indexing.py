"""Indexing, slicing and gathering."""

from typing import Any

from attnlab.tracer.axes.atoms import Atom, Axes, Axis, anonymous, leaves, part, root, size
from attnlab.tracer.axes.engine import Flow
from attnlab.tracer.axes.op_call import Call, TracedTensor, by_name


def getitem(flow: Flow, call: Call) -> TracedTensor | Axes | None:
    index = call.arg(1, "indices")
    parts = list(index) if isinstance(index, (list, tuple)) else [index]
    return taken(flow, call, call.x, parts, call.shape)


def taken(
    flow: Flow, call: Call, x: TracedTensor, parts: list[Any], shape: tuple[int, ...]
) -> TracedTensor | Axes | None:
    """The axes of `x[parts]`."""
    mask = _mask_of(parts, x, shape)
    parts = _spelled(parts, len(x.shape), mask)
    axes: Axes = []
    advanced: list[int] = []  # where index tensors stand among the axes made so far
    at = 0
    for p in parts:
        if p is None:
            axes.append(())
        elif isinstance(p, (TracedTensor, list)):
            advanced.append(len(axes))
            at += len(p.shape) if isinstance(p, TracedTensor) and p is mask else 1
        else:  # a slice or an integer
            axes += [_sliced(x, at, p)] if isinstance(p, slice) else []
            at += 1
    axes += x.axes[at:]
    if advanced:
        _insert(flow, call, axes, advanced, parts, shape)
    pooled = x.pooled if len(axes) == len(x.axes) else None
    if call.floats and parts and type(parts[0]) is int and _is_entry(x):
        pooled = call.row
        flow.entries.add(call.row)
    return TracedTensor(
        shape, axes, soft=x.soft if not advanced else None, pooled=pooled, tiled=x.tiled
    )


def _is_entry(x: TracedTensor) -> bool:
    """The first axis is the batch, and positions stand behind it."""
    kinds = [{a.kind for a in leaves(axis)} for axis in x.axes]
    places = any(found and found <= {"index", "joined"} for found in kinds[1:])
    return kinds[:1] == [{"batch"}] and places and not x.weight


def _spelled(parts: list[Any], rank: int, mask: TracedTensor | None = None) -> list[Any]:
    """`...` written out as so many full slices."""
    named = [p for p in parts if p is not None and p is not Ellipsis]
    used = sum(len(mask.shape) if mask is not None and p is mask else 1 for p in named)
    full = [slice(None)] * (rank - used)
    return [q for p in parts for q in (full if p is Ellipsis else [p])]


def _mask_of(parts: list[Any], x: TracedTensor, shape: tuple[int, ...]) -> TracedTensor | None:
    """A boolean index of several axes, told from indices by the rank of what it takes out."""
    arrays = [p for p in parts if isinstance(p, TracedTensor) and len(p.shape) > 1]
    if len(arrays) != 1:
        return None
    gone = sum(isinstance(p, int) for p in parts)
    rank = len(x.shape) - gone + parts.count(None) - len(arrays[0].shape) + 1
    return arrays[0] if rank == len(shape) else None


def _sliced(x: TracedTensor, at: int, s: slice) -> Axis:
    old, n = x.axes[at], x.shape[at]
    try:
        length = len(range(*s.indices(n)))
    except TypeError:  # a bound that is a tensor
        return ()
    if length == n:
        return old
    if x.weight and length != 1:  # positions cut out of a table
        return (Atom(length, "table", old[0].name if old else ""),)
    return part(old, length)


def _insert(
    flow: Flow,
    call: Call,
    axes: Axes,
    advanced: list[int],
    parts: list[Any],
    shape: tuple[int, ...],
) -> None:
    """Index tensors make their own axes: at the first one's place, or in front of all."""
    rank = len(shape) - len(axes)
    met: Axes = [()] * rank
    if len(advanced) > 1:  # a lone index picks, and as many only by chance
        _counted(call, parts)
    for p in parts:
        if isinstance(p, TracedTensor) and len(p.axes) <= rank:
            pad: Axes = [()] * (rank - len(p.axes))
            met = [flow.unify(a, b, call) for a, b in zip(met, [*pad, *p.axes], strict=True)]
    place = advanced[0] if len(set(advanced)) == 1 else 0
    wanted = shape[place : place + rank]
    fresh = anonymous(wanted)
    axes[place:place] = [
        a if size(leaves(a)) == n else f for a, n, f in zip(met, wanted, fresh, strict=True)
    ]


def _counted(call: Call, parts: list[Any]) -> None:
    """`x[torch.arange(B)[:, None], ...]` takes all of an axis: the index is that axis."""
    at = 0
    for p in parts:
        if isinstance(p, TracedTensor) and at < len(call.x.axes):
            long = [axis for axis in p.axes if leaves(axis)]
            if len(long) == 1:
                _become(leaves(long[0]), leaves(call.x.axes[at]))
        at += p is not None


def _become(count: Axis, own: Axis) -> None:
    if len(count) != 1 or len(own) != 1 or count[0].kind != "count":
        return
    if count[0] is not own[0] and count[0].size == own[0].size and root(own[0]) is not count[0]:
        count[0].alias = own[0]


def setitem(flow: Flow, call: Call) -> TracedTensor:
    """`x[parts] = value`: the place that is written gives the value its names, and takes them."""
    x = call.x
    index, value = call.arg(1, "indices"), call.arg(2, "value")
    parts = list(index) if isinstance(index, (list, tuple)) else [index]
    if isinstance(value, TracedTensor) and not any(
        isinstance(p, (TracedTensor, list)) for p in parts
    ):
        axes: Axes = []
        at = 0
        for p in _spelled(parts, len(x.shape)):
            if isinstance(p, slice):
                axes.append(_whole(x, at, p))
            at += p is not None
        axes += x.axes[at:]
        rank = min(len(axes), len(value.axes))
        for a, b in zip(
            axes[len(axes) - rank :], value.axes[len(value.axes) - rank :], strict=True
        ):
            if size(leaves(a)) == size(leaves(b)):
                flow.unify(a, b, call)
    return call.view(list(x.axes))


def _whole(x: TracedTensor, at: int, s: slice) -> Axis:
    return x.axes[at] if len(range(*s.indices(x.shape[at]))) == x.shape[at] else ()


def index_select(flow: Flow, call: Call) -> Axes:
    at = call.dim(1, 0)
    axes = list(call.x.axes)
    index = call.arrays[1]
    axes[at] = index.axes[0] if index.axes else ()
    return axes


def gather(flow: Flow, call: Call) -> Axes:
    at, index = call.dim(1, 0), call.arrays[1]
    return [
        flow.unify(own, asked, call)
        if i != at and size(leaves(own)) == size(leaves(asked))
        else asked
        for i, (own, asked) in enumerate(zip(call.x.axes, index.axes, strict=True))
    ]


def take(flow: Flow, call: Call) -> Axes:
    return list(call.arrays[1].axes)


RULES = by_name(
    {
        getitem: "getitem",
        setitem: "setitem",
        index_select: "index_select",
        gather: "gather take_along_dim",
        take: "take",
    }
)
