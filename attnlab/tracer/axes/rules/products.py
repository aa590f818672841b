"""Matrix products, einsum and fused attention: one axis is summed, the outer ones stay."""

from functools import partial

from attnlab.tracer.axes.atoms import DATA, Axes, Axis, find, leaves, origin, size, stem, top
from attnlab.tracer.axes.engine import Flow, primed_apart
from attnlab.tracer.axes.op_call import Call, Mark, Tile, TracedTensor, by_name
from attnlab.tracer.axes.rules.layers import layer_axis


def matmul(flow: Flow, call: Call) -> TracedTensor:
    a, b = call.arrays[-2:]
    if call.name == "rmatmul":
        a, b = b, a
    return product(flow, call, a, b)


def product(flow: Flow, call: Call, a: TracedTensor, b: TracedTensor) -> TracedTensor:
    if len(b.shape) == 2 and b.weight:  # a weight that is no linear layer's
        out = layer_axis(flow, a.axes[-1], call.shape[-1], call)
        flow.unify(a.axes[-1], b.axes[0], call)
        flow.unify(out, b.axes[1], call)
        return TracedTensor(call.shape, [*a.axes[:-1], out])
    left: Axes = list(a.axes) if len(a.shape) > 1 else [(), *a.axes]
    right: Axes = list(b.axes) if len(b.shape) > 1 else [*b.axes, ()]
    check_summed(flow, call, (left[-1], a), (right[-2], b))
    flow.unify(left[-1], right[-2], call, f"{call.name} sums")
    roles(left[-1], left[:-1])
    roles(right[-2], right[:-2], "Hkv" if _wide(left) != _wide(right) else "H")
    rank = max(len(left), len(right)) - 2
    outer = [
        flow.unify(x, y, call, f"{call.name} takes as one batch")
        for x, y in zip(_leading_axes(left, rank), _leading_axes(right, rank), strict=True)
    ]
    _check_head_order(flow, a, b)
    axes = [*outer, left[-2], right[-1]]
    if len(a.shape) == 1:
        del axes[-2]
    if len(b.shape) == 1:
        del axes[-1]
    if call.name == "baddbmm":
        bias = call.arrays[0].axes
        pad: Axes = [()] * (len(axes) - len(bias))
        axes = [flow.unify(x, y, call) for x, y in zip(axes, [*pad, *bias], strict=True)]
    tiled = a.tiled if a.tiled is not None else b.tiled
    return TracedTensor(
        call.shape, axes, tiled=tiled if a.soft is None and b.soft is None else None
    )


def _wide(axes: Axes) -> int:
    return size(a for axis in axes[:-2] for a in leaves(axis))


def _leading_axes(axes: Axes, rank: int) -> Axes:
    return [*[()] * (rank + 2 - len(axes)), *axes[:-2]]


def check_summed(flow: Flow, call: Call, *sides: tuple[Axis, TracedTensor]) -> None:
    """What may not be summed: the batch, and another axis than the softmax before it."""
    for axis, arr in sides:
        now = leaves(axis)
        if now and all(x.kind == "batch" for x in now):  # tokens of all entries may be routed
            flow.report(
                call.row,
                "batch-contraction",
                partial(_batch_summed_message, flow, call, axis),
                "note" if all(_is_plain(side) for _, side in sides) else "warning",
            )
        mark = None if arr.weighed else arr.soft
        if mark is not None and now and not _shared(mark.atoms, now):
            flow.report(
                call.row if mark.keys else mark.row,
                "softmax-axis",
                partial(softmax_axis_message, flow, call, mark, axis),
                "note" if _is_choice(mark.atoms) else "warning",
            )


def _is_plain(arr: TracedTensor) -> bool:
    """Features of entries alone: summed over the batch they are a covariance, a statistic."""
    kinds = [[x.kind for x in leaves(axis)] for axis in arr.axes]
    return len(kinds) == 2 and ["batch"] in kinds and ["feature"] in kinds


def _is_choice(axis: Axis) -> bool:
    """All that a layer made: clusters or experts that each position is shared out to."""
    return all(a.kind == "feature" and a.parent is None for a in leaves(axis))


def _shared(a: Axis, b: Axis) -> bool:
    """One axis or slices of one; of an axis of positions also pieces of one length."""
    if {id(stem(x)) for x in leaves(a)} & {id(stem(x)) for x in leaves(b)}:
        return True
    pieces = [{(id(origin(x)), x.size) for x in leaves(y) if x.kind in DATA} for y in (a, b)]
    return bool(pieces[0] & pieces[1])


def _batch_summed_message(flow: Flow, call: Call, axis: Axis) -> str:
    return (
        f"{call.name} sums over {flow.names.axis(axis)}, the batch axis: every entry of the batch "
        "gets something of every other"
    )


def softmax_axis_message(flow: Flow, call: Call, mark: Mark, axis: Axis) -> str:
    sums = f"{call.name} {flow.place(call, mark.row)} sums"
    return (
        f"softmax runs over axis {flow.names.axis(mark.atoms)}, but {sums} over axis "
        f"{flow.names.axis(axis)}: the weights of one sum do not add up to 1"
    )


def _check_head_order(flow: Flow, a: TracedTensor, b: TracedTensor) -> None:
    """Key heads laid out 0 1 0 1 by `repeat` beside query heads that nobody laid out so."""
    for one, other in ((a, b), (b, a)):
        if one.tiled is not None and other.tiled is None:
            flow.report(one.tiled.row, "head-order", partial(_head_order_message, one.tiled))


def _head_order_message(tile: Tile) -> str:
    copies = find(tile.copies)
    if copies.kind in DATA or copies.parent is None:
        return ""  # copies for entries of the batch, or for experts that have an axis of their own
    return (
        "repeat lays the key and value heads down as 0 1 0 1: query head h meets key head "
        "h % Hkv. Grouped heads are h // (H / Hkv), which repeat_interleave makes"
    )


def roles(axis: Axis, outer: Axes, heads: str = "H") -> None:
    """Features that are summed are a head's width, and what was split off with them the heads."""
    for atom in leaves(axis):
        if atom.kind != "feature" or atom.parent is None:
            continue
        atom.name = atom.name or "hd"
        whole = top(atom)
        beside = [
            (a, "Hkv" if _is_copied(other) else heads)
            for other in outer
            for a in leaves(other)
            if a is not atom and a.kind == "feature" and a.parent and top(a) is whole
        ]
        if len(beside) == 1:  # of groups and heads within them neither is as many as there are
            beside[0][0].name = beside[0][0].name or beside[0][1]


def _is_copied(axis: Axis) -> bool:
    """Heads that are repeated, so that several query heads share one."""
    pieces = leaves(axis)
    return len(pieces) > 1 and any(a.kind == "tile" or a.made == "copies" for a in pieces)


def einsum(flow: Flow, call: Call) -> TracedTensor | None:
    equation = call.arg(0, "equation")
    if type(equation) is not str:
        return None
    left, arrow, out = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if not arrow:
        letters = "".join(terms)
        out = "".join(sorted(c for c in set(letters) if letters.count(c) == 1 and c.isalpha()))
    known: dict[str, Axis] = {}
    pairs = zip(terms, call.arrays, strict=True)
    hidden = [len(arr.axes) - len(term.replace("...", "")) for term, arr in pairs]
    placed = [_placed(term, n) for term, n in zip(terms, hidden, strict=True)]
    for letters_, arr in zip(placed, call.arrays, strict=True):
        for letter, axis in zip(letters_, arr.axes, strict=True):
            how = "einsum sums" if letter not in out else "einsum lines up"
            known[letter] = flow.unify(known.get(letter, ()), axis, call, how)
            if letter not in out and letter.isalpha():
                roles(axis, arr.axes)
    for letters_, arr in zip(placed, call.arrays, strict=True):
        _all_summed(
            flow, call, arr, [c for c in letters_ if c not in out and c.isalpha()], letters_
        )
    order = _placed(out, max(hidden, default=0))
    if len(call.arrays) == 2:
        _check_head_order(flow, *call.arrays)
    return TracedTensor(
        call.shape, [_out(flow, known[c], call, i, placed) for i, c in enumerate(order)]
    )


def _all_summed(
    flow: Flow, call: Call, arr: TracedTensor, gone: list[str], letters: list[str]
) -> None:
    """Of several letters that are summed, one has to be the softmax's."""
    axes = [arr.axes[letters.index(c)] for c in gone if leaves(arr.axes[letters.index(c)])]
    mark = arr.soft
    if mark is not None and any(_shared(mark.atoms, leaves(axis)) for axis in axes):
        axes = [axis for axis in axes if _shared(mark.atoms, leaves(axis))]
    check_summed(flow, call, *((axis, arr) for axis in axes))


def _out(flow: Flow, axis: Axis, call: Call, place: int, placed: list[list[str]]) -> Axis:
    """An axis of a weight that is no linear layer's is a feature that the sum makes."""
    now = leaves(axis)
    weight = [a for a in call.arrays if a.weight]
    if (
        weight
        and now
        and all(x.kind == "free" for x in now)
        and any(axis in a.axes for a in weight)
    ):
        return flow.feature(call.shape[place], call)
    return axis


def _placed(term: str, hidden: int) -> list[str]:
    """A letter for each axis, those hidden behind dots counted from the right."""
    before, dots, after = term.partition("...")
    return [*before, *(f".{i - hidden}" for i in range(hidden if dots else 0)), *after]


def sdpa(flow: Flow, call: Call) -> TracedTensor:
    """softmax(q @ k.mT) @ v in one kernel."""
    q, k, v = call.arrays[:3]
    flow.unify(q.axes[-1], k.axes[-1], call, "scaled_dot_product_attention sums")
    keys = flow.unify(k.axes[-2], v.axes[-2], call, "scaled_dot_product_attention sums")
    for axis in (q.axes[-2], keys):
        if any(a.kind == "batch" for a in leaves(axis)):
            flow.report(
                call.row, "batch-contraction", partial(_batch_summed_message, flow, call, axis)
            )
    _check_head_order(flow, q, k)
    roles(q.axes[-1], q.axes[:-2])
    roles(k.axes[-1], k.axes[:-2], "Hkv" if _wide(q.axes) != _wide(k.axes) else "H")
    outer = [
        flow.unify(x, y, call, "scaled_dot_product_attention takes as one batch")
        if size(x) == size(y)
        else x
        for x, y in zip(q.axes[:-2], _leading_axes(k.axes, len(q.axes) - 2), strict=True)
    ]
    _check_attention_axis(flow, call, q)
    _unify_mask(flow, call, [*q.axes[:-1], keys])
    return TracedTensor(call.shape, [*outer, q.axes[-2], v.axes[-1]])


def _check_attention_axis(flow: Flow, call: Call, q: TracedTensor) -> None:
    along = leaves(q.axes[-2])
    places = [a for axis in q.axes[:-2] for a in leaves(axis) if a.kind == "index"]
    split = {top(a) for a in along} & {top(a) for a in leaves(q.axes[-1])}  # heads and their width
    if split and places and all(a.kind == "feature" for a in along):
        flow.report(
            call.row,
            "attention-axis",
            lambda: (
                f"attends along {flow.names.axis(q.axes[-2])}, the last axis but one of "
                f"({', '.join(flow.names.shape(q.axes))}), and not along the positions: transpose "
                "heads and positions first"
            ),
        )


def _unify_mask(flow: Flow, call: Call, scores: Axes) -> None:
    """The mask is lined up with (..., queries, keys)."""
    mask = call.arg(3, "attn_mask")
    if not isinstance(mask, TracedTensor):
        return
    aligned = primed_apart(scores)[-len(mask.axes) :]
    for axis, other in zip(mask.axes, aligned, strict=False):
        flow.unify(axis, other, call, "attn_mask of scaled_dot_product_attention lines up")


def tensordot(flow: Flow, call: Call) -> Axes | None:
    dims = call.arg(2, "dims", 2)
    a, b = call.arrays[:2]
    if type(dims) is int:
        pairs = [(len(a.axes) - dims + i, i) for i in range(dims)]
    else:
        pairs = list(zip(dims[0], dims[1], strict=True))
    for i, j in pairs:
        check_summed(flow, call, (a.axes[i], a), (b.axes[j], b))
        flow.unify(a.axes[i], b.axes[j], call, "tensordot sums")
    left = {i % len(a.axes) for i, _ in pairs}
    right = {j % len(b.axes) for _, j in pairs}
    return [
        *(x for i, x in enumerate(a.axes) if i not in left),
        *(x for j, x in enumerate(b.axes) if j not in right),
    ]


def cdist(flow: Flow, call: Call) -> Axes:
    a, b = call.arrays[:2]
    flow.unify(a.axes[-1], b.axes[-1], call, "cdist sums")
    outer = [flow.unify(x, y, call) for x, y in zip(a.axes[:-2], b.axes[:-2], strict=True)]
    return [*outer, a.axes[-2], b.axes[-2]]


RULES = by_name(
    {
        matmul: "matmul bmm mm mv dot rmatmul baddbmm inner addmv",
        einsum: "einsum",
        sdpa: "scaled_dot_product_attention",
        tensordot: "tensordot",
        cdist: "cdist",
    }
)
