"""Operations that only look at a tensor in another way."""

from attnlab.tracer.axes.atoms import Atom, Axes, leaves, literal, part, split
from attnlab.tracer.axes.engine import Flow
from attnlab.tracer.axes.op_call import Call, TracedTensor, by_name
from attnlab.tracer.axes.regroup import regroup


def reshape(flow: Flow, call: Call) -> TracedTensor:
    return call.view(regroup(flow, call.x.axes, call.shape, call))


def keep_axes(flow: Flow, call: Call) -> TracedTensor:
    return call.view(list(call.x.axes))


def permute(flow: Flow, call: Call) -> TracedTensor:
    dims = call.arg(1, "dims")
    order = dims if isinstance(dims, (list, tuple)) else call.args[1:]
    return call.view([call.x.axes[d] for d in order])


def transpose(flow: Flow, call: Call) -> TracedTensor:
    """The two axes are called dim0 and dim1, or axis0 and axis1 as in NumPy."""
    axes = list(call.x.axes)
    word = "axis" if call.name == "swapaxes" else "dim"
    i, j = call.dim(1, 0, f"{word}0"), call.dim(2, 0, f"{word}1")
    axes[i], axes[j] = axes[j], axes[i]
    return call.view(axes)


def flipped(flow: Flow, call: Call) -> TracedTensor:
    """`.T` reverses all axes, `.mT` the last two; of a matrix they are the same.

    A weight stays one, so that a product with it is a layer.
    """
    axes = list(call.x.axes)
    if call.name in ("mT", "mH"):
        axes[-2:] = axes[:-3:-1]
    else:
        axes.reverse()
        _all_reversed(flow, call, axes)
    arr = call.view(axes)
    arr.weight = call.x.weight
    return arr


def _all_reversed(flow: Flow, call: Call, axes: Axes) -> None:
    """`.T` of a batch of matrices, which PyTorch warns of too."""
    if len(axes) > 2 and call.name in ("T", "H") and not call.x.weight:
        flow.report(
            call.row,
            "axes-reversed",
            lambda: (
                f".{call.name} reverses all axes: ({', '.join(flow.names.shape(call.x.axes))}) "
                f"became ({', '.join(flow.names.shape(axes))}). .mT swaps the last two alone"
            ),
        )


def movedim(flow: Flow, call: Call) -> TracedTensor:
    rank = len(call.x.shape)
    source, target = (call.arg(p, n) for p, n in ((1, "source"), (2, "destination")))
    froms = [d % rank for d in (source if isinstance(source, (list, tuple)) else [source])]
    tos = [d % rank for d in (target if isinstance(target, (list, tuple)) else [target])]
    order: list[int] = [-1] * rank
    for f, t in zip(froms, tos, strict=True):
        order[t] = f
    rest = iter([d for d in range(rank) if d not in froms])
    return call.view([call.x.axes[d if d >= 0 else next(rest)] for d in order])


def squeeze(flow: Flow, call: Call) -> TracedTensor:
    """Only axes of size 1 go, which have no atoms."""
    kept = [a for a in call.x.axes if leaves(a)]
    rest: Axes = [() if n == 1 else kept.pop(0) for n in call.shape]
    if call.name == "squeeze" and len(call.args) + len(call.kwargs) == 1:
        _all_gone(flow, call)
    return call.view(rest) if not kept else reshape(flow, call)


def _all_gone(flow: Flow, call: Call) -> None:
    """squeeze() takes every axis of size 1, also a batch of one."""
    ones = [s for s, n in flow.names.all.sizes.items() if n == 1]
    gone = len(call.x.shape) - len(call.shape)
    if ones and gone > 1:
        flow.report(
            call.row,
            "squeeze-too-much",
            lambda: (
                f"squeeze() took {gone} axes of size 1, and {', '.join(ones)} is 1 here: with "
                "another size of it the result has another rank. Name the axis: squeeze(-1)"
            ),
        )


def unfold(flow: Flow, call: Call) -> Axes:
    """Windows of an axis: how many stay in its place, what is in one comes last."""
    at, axes = call.dim(1, 0, "dimension"), list(call.x.axes)
    length, step = call.arg(2, "size"), call.arg(3, "step")
    atoms = leaves(axes[at])
    n = call.shape[at]
    if length == step and len(atoms) == 1 and atoms[0].size == n * length and n > 1:
        outer, inner = split(atoms[0], (n, length))
        axes[at] = (outer,)
        return [*axes, (inner,)]
    axes[at] = part(axes[at], n)
    return [*axes, literal(length)]


def expand(flow: Flow, call: Call) -> TracedTensor:
    axes: Axes = [(), *[()] * (len(call.shape) - len(call.x.axes) - 1), *call.x.axes]
    axes = axes[len(axes) - len(call.shape) :]
    copies = [(Atom(n, made="copies"),) if n != 1 else () for n in call.shape]
    return call.view([a or c for a, c in zip(axes, copies, strict=True)])


def unbind(flow: Flow, call: Call) -> list[Axes]:
    return [select(flow, call) for _ in call.outs]


def pieces(flow: Flow, call: Call) -> list[TracedTensor]:
    """chunk, split: the same axes, one of them cut. Of a weight they are weights."""
    x, at = call.x, call.dim(2, 0)
    return [TracedTensor(s, _cut(x, at, s[at]), weight=x.weight) for s in call.outs]


def _cut(x: TracedTensor, at: int, n: int) -> Axes:
    """The axes with n entries left of one of them."""
    cut = x.axes[at] if n == x.shape[at] else part(x.axes[at], n)
    return [*x.axes[:at], cut, *x.axes[at + 1 :]]


def narrow(flow: Flow, call: Call) -> Axes:
    at = call.dim(1, 0)
    return _cut(call.x, at, call.shape[at])


def select(flow: Flow, call: Call) -> Axes:
    at = call.dim(1, 0)
    return [a for i, a in enumerate(call.x.axes) if i != at]


def diagonal(flow: Flow, call: Call) -> Axes:
    i, j = call.dim(2, 0, "dim1"), call.dim(3, 1, "dim2")
    along, n = call.x.axes[i], call.shape[-1]
    kept = [a for k, a in enumerate(call.x.axes) if k not in (i, j)]
    return [*kept, along if n == call.x.shape[i] else part(along, n)]


def as_complex(flow: Flow, call: Call) -> Axes:
    return call.x.axes[:-1]


def as_real(flow: Flow, call: Call) -> Axes:
    return [*call.x.axes, literal(2)]


RULES = by_name(
    {
        reshape: "view reshape flatten unflatten ravel view_as reshape_as",
        keep_axes: "contiguous detach data clone alias real imag",
        squeeze: "squeeze unsqueeze atleast_1d atleast_2d atleast_3d",
        permute: "permute",
        transpose: "transpose swapaxes swapdims",
        flipped: "T mT H mH t adjoint",
        movedim: "movedim moveaxis",
        expand: "expand expand_as broadcast_to",
        unbind: "unbind",
        pieces: "chunk split tensor_split split_with_sizes",
        narrow: "narrow",
        unfold: "unfold",
        select: "select",
        diagonal: "diagonal",
        as_complex: "view_as_complex",
        as_real: "view_as_real",
    }
)
