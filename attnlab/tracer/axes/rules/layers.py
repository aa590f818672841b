"""Layers: what comes in at the last axis, or the channels, goes out as features of their own."""

from attnlab.tracer.axes.atoms import DATA, LOOSE, Atom, Axes, Axis, anonymous, leaves, part
from attnlab.tracer.axes.engine import Flow
from attnlab.tracer.axes.op_call import Call, by_name

PACKED = "in_proj_weight"  # queries, keys and values of nn.MultiheadAttention, side by side


def linear(flow: Flow, call: Call) -> Axes:
    """Over features it makes features; over positions it makes positions, which nothing names."""
    x = call.x
    out = layer_axis(flow, x.axes[-1], call.shape[-1], call)
    if out and len(call.arrays) > 1 and call.arrays[1].weight.endswith(PACKED):
        out[0].name = PACKED
    return [*x.axes[:-1], out]


def layer_axis(flow: Flow, over: Axis, n: int, call: Call) -> Axis:
    if not any(a.kind in DATA or a.made == "over" for a in leaves(over)):
        return flow.feature(n, call)
    # Positions mixed: a second layer over them makes positions again.
    return (Atom(n, made="over"),) if n != 1 else ()


def bilinear(flow: Flow, call: Call) -> Axes:
    axes = [
        flow.unify(a, b, call) for a, b in zip(call.x.axes[:-1], call.arrays[1].axes, strict=False)
    ]
    return [*axes, flow.feature(call.shape[-1], call)]


def addmm(flow: Flow, call: Call) -> Axes:
    """Bias + x @ weight."""
    x, weight = call.arrays[1], call.arrays[2]
    if weight.weight:
        return [x.axes[0], layer_axis(flow, x.axes[1], call.shape[-1], call)]
    flow.unify(x.axes[1], weight.axes[0], call, "addmm sums")
    return [x.axes[0], weight.axes[1]]


def embedding(flow: Flow, call: Call) -> Axes:
    """`F.embedding(indices, table)`; `torch.embedding(table, indices)` has them the other way."""
    rank = len(call.shape) - 1
    indices = next(a for a in call.arrays if len(a.shape) == rank and not a.weight)
    return [*indices.axes, flow.feature(call.shape[-1], call)]


def one_hot(flow: Flow, call: Call) -> Axes:
    return [*call.x.axes, *anonymous(call.shape[-1:])]


def conv(flow: Flow, call: Call) -> Axes:
    """(B, C, L...) to (B, channels, L/stride...)."""
    x = call.x
    lead = len(x.shape) - int(call.name[-2]) - 1  # conv2d: two spatial axes, and the channels
    channels = x.axes[lead] if lead < len(x.axes) else ()
    places = zip(x.axes, x.shape, call.shape, strict=True)
    return [
        *x.axes[:lead],
        layer_axis(flow, channels, call.shape[lead], call),
        *(scaled(flow, *place) for place in list(places)[lead + 1 :]),
    ]


def scaled(flow: Flow, axis: Axis, before: int, after: int) -> Axis:
    """A spatial axis after strides, pooling or interpolation."""
    if before == after:
        return axis
    if after == 1:
        return ()
    atoms = leaves(axis)
    name = flow.names.axis(axis)
    tables = {a.kind for a in atoms if a.kind in LOOSE}
    known = not tables and bool(atoms)
    atom = Atom(after, "index" if known else "table" if "table" in tables else "free")
    if not name.isdigit() and atoms:
        ratio = before // after
        atom.name = (
            f"{name}/{ratio}" if ratio > 1 and before // ratio == after else f"{name}~{after}"
        )
        atom.base = atoms[0] if len(atoms) == 1 else None
    return (atom,)


def pool(flow: Flow, call: Call) -> list[Axes]:
    x = call.x
    return [
        [scaled(flow, a, n, m) for a, n, m in zip(x.axes, x.shape, shape, strict=True)]
        for shape in call.outs
    ]


def attention(flow: Flow, call: Call) -> Axes:
    """`nn.MultiheadAttention` as one row: (L, B, D) or (L, D) of queries, whatever is inside."""
    query = call.arrays[0]
    sequence = query.axes[0]
    if any(a.kind == "batch" for a in leaves(sequence)) and len(query.shape) == 3:
        flow.report(
            call.row,
            "batch-contraction",
            lambda: (
                f"attends along axis {flow.names.axis(sequence)}, the batch: "
                "nn.MultiheadAttention takes (S, B, D) unless it is built with batch_first=True"
            ),
        )
    return [*query.axes[:-1], flow.feature(call.shape[-1], call)]


def recurrent(flow: Flow, call: Call) -> list[Axes]:
    """(B, S, D) or (S, B, D) to its states, and to the last ones, (layers, B, D)."""
    x = call.x
    last = [a for a in call.arrays[1:] if not a.weight and len(a.shape) == len(x.shape)]
    at = 0 if call.kwargs.get("batch_first", call.args[-1] is True) else 1
    entries = x.axes[at]
    for state in last:
        flow.unify(state.axes[1], entries, call)
    states = [*x.axes[:-1], flow.feature(call.shape[-1], call)]
    ends = [[*anonymous(s[:1]), entries, flow.feature(s[-1], call)] for s in call.outs[1:]]
    return [states, *ends]


def gated(flow: Flow, call: Call) -> Axes:
    """One half of an axis times the sigmoid of the other."""
    at = call.dim(1, -1)
    half = part(call.x.axes[at], call.shape[at])
    return [half if i == at else axis for i, axis in enumerate(call.x.axes)]


RULES = by_name(
    {
        gated: "glu",
        linear: "linear",
        bilinear: "bilinear",
        addmm: "addmm",
        embedding: "embedding",
        one_hot: "one_hot",
        conv: "conv1d conv2d conv3d conv_transpose1d conv_transpose2d",
        pool: "interpolate upsample max_pool1d max_pool2d avg_pool1d avg_pool2d boolean_dispatch "
        "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_max_pool1d adaptive_max_pool2d",
        attention: "multi_head_attention_forward",
        recurrent: "lstm gru rnn_tanh rnn_relu",
    }
)
