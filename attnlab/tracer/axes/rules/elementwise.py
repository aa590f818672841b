"""Operations that work entry by entry, on tensors lined up from the right."""

from dataclasses import replace

from attnlab.tracer.axes.atoms import Axes, Axis, leaves
from attnlab.tracer.axes.engine import Flow
from attnlab.tracer.axes.op_call import Added, Call, Mark, TracedTensor, by_name
from attnlab.tracer.axes.rules.reductions import reduce

SAME = """
    abs neg negative expm1 log log2 log1p log10 sqrt rsqrt reciprocal square sin cos tan
    tanh sinh cosh atan asin acos sigmoid relu relu6 gelu silu mish elu selu celu
    leaky_relu softplus softsign hardtanh hardswish hardsigmoid logsigmoid erf erfc
    erfinv floor ceil round trunc frac sign sgn clamp clip clamp_min clamp_max
    nan_to_num nan_to_num_ to type type_as float double half bfloat16 bool int long
    short byte char cpu cuda requires_grad_ dropout alpha_dropout feature_dropout
    dropout1d dropout2d dropout3d cummax cummin tril triu layer_norm rms_norm group_norm
    batch_norm instance_norm native_layer_norm logical_not bitwise_not invert isnan
    isinf isfinite flip fliplr flipud sort argsort msort fill fill_ zero_ normal_
    uniform_ masked_fill positive conj resolve_conj angle logit threshold softmin
    deg2rad renorm bernoulli index_fill index_copy index_add scatter scatter_add
    scatter_reduce put index_put masked_scatter histc local_response_norm fill_diagonal_
    quantize_per_tensor dequantize contiguous_format glu_ numpy_T set_ copy_
    exponential_ ndtr xlogy lerp heaviside fake_quantize_per_tensor_affine polygamma
    digamma lgamma
"""
LIKE = "zeros_like ones_like empty_like full_like rand_like randn_like randint_like"
BINARY = """
    add sub subtract mul multiply div divide true_divide floor_divide remainder fmod pow
    float_power maximum minimum max min fmax fmin eq ne lt le gt ge less less_equal
    greater greater_equal not_equal equal_ logical_and logical_or logical_xor
    bitwise_and bitwise_or bitwise_xor and or xor rsub radd rmul rdiv rtruediv truediv
    floordiv rfloordiv rpow mod rmod iadd isub imul itruediv iand ior ixor addcmul
    addcdiv where atan2 polar complex hypot masked_fill copysign isclose ldexp logaddexp
    logaddexp2 rand ror lshift rshift bitwise_left_shift bitwise_right_shift dist_ xor_
    cross prelu where_ clamp_tensor lerp copy nextafter binary_cross_entropy_with_logits
"""
DIVISIONS = {"div", "divide", "true_divide", "truediv", "itruediv"}
MASKING = {"add", "iadd", "radd", "masked_fill", "where"}


def keep_axes(flow: Flow, call: Call) -> TracedTensor | list[TracedTensor]:
    x = call.x
    found = [
        TracedTensor(
            s,
            list(x.axes),
            soft=x.soft,
            pooled=x.pooled,
            tiled=x.tiled,
            exp=x.exp,
            added=x.added,
            weighed=x.weighed,
        )
        for s in call.outs
    ]
    return found if len(found) > 1 else found[0]


def shaped_like(flow: Flow, call: Call) -> list[TracedTensor]:
    """A factory takes the axes of its operand, and nothing of its values."""
    return [TracedTensor(s, list(call.x.axes)) for s in call.outs]


def power(flow: Flow, call: Call) -> TracedTensor:
    """exp: divided by its own sum it is a softmax."""
    arr = keep_axes(flow, call)
    assert isinstance(arr, TracedTensor)
    arr.exp = True
    if call.x.less:
        arr.soft = Mark(call.row, leaves(call.x.less), keys=_is_keys(call.x, leaves(call.x.less)))
    return arr


def normalize(flow: Flow, call: Call) -> TracedTensor | list[TracedTensor]:
    at = call.dim(2, 1)
    axis = leaves(call.x.axes[at])
    rows = at == 0 and len(call.x.shape) == 2 and [a.name for a in axis] == ["N"]
    if rows or any(a.kind == "batch" for a in axis):
        flow.report(
            call.row,
            "batch-contraction",
            lambda: (
                f"normalize runs over the batch axis {flow.names.axis(axis)}: entries of the "
                "batch are scaled by each other"
            ),
        )
    return keep_axes(flow, call)


def combine(flow: Flow, call: Call) -> TracedTensor | Axes | list[TracedTensor]:
    """Axes lined up from the right. `max(dim)` and `where(condition)` are no such operations."""
    if call.name in ("max", "min", "where") and len(call.arrays) < 2:
        return reduce(flow, call) if call.name != "where" else []
    rank = len(call.shape)
    axes: Axes = [()] * rank
    for arr in call.arrays:
        pad: Axes = [()] * (rank - len(arr.axes))
        axes = [flow.unify(a, b, call) for a, b in zip(axes, [*pad, *arr.axes], strict=True)]
    _twice(flow, call, axes)
    last = call.arrays[-1]
    logs = call.name == "sub" and last.logs and last.total is call.x
    return TracedTensor(
        call.shape,
        axes,
        soft=_mark(call, axes),
        tiled=next((a.tiled for a in call.arrays if a.tiled is not None), None),
        exp=any(a.exp for a in call.arrays) and call.name not in DIVISIONS,
        added=_added(call),
        less=(*last.over, *call.x.less) if logs else (),  # also along both axes in turn
        weighed=_is_weighed(call),
    )


def _is_weighed(call: Call) -> bool:
    """Weights times what they weigh, which has axes of its own; a mask has none."""
    weights = [a for a in call.arrays if a.soft is not None]
    grown = call.name == "mul" and len(weights) == 1 and weights[0].shape != call.shape
    return grown or any(a.weighed for a in weights)


def _twice(flow: Flow, call: Call, axes: Axes) -> None:
    """Operands of different rank, and a result that has the batch on two axes."""
    if len({len(a.shape) for a in call.arrays if a.shape}) < 2:
        return
    if _batches(axes) <= max(1, *(_batches(a.axes) for a in call.arrays)):
        return
    flow.report(call.row, "silent-broadcast", lambda: _doubled(flow, call, axes))


def _doubled(flow: Flow, call: Call, axes: Axes) -> str:
    shapes = " and ".join(f"({', '.join(flow.names.shape(a.axes))})" for a in call.arrays)
    return (
        f"silent broadcast: {call.name} of {shapes} lines up axes from the right, and the result "
        f"({', '.join(flow.names.shape(axes))}) has the batch twice"
    )


def _batches(axes: Axes) -> int:
    return sum(any(a.kind == "batch" for a in leaves(axis)) for axis in axes)


def _mark(call: Call, axes: Axes) -> Mark | None:
    """A softmax stays one under a mask or a dropout; what is divided by its own sum is one."""
    marked = [a for a in call.arrays if a.soft is not None]
    if len(call.arrays) > 1 and call.name in DIVISIONS:
        top, below = call.arrays[:2]
        if below.total is not top or not (top.exp or top.soft is not None):
            return None
        over = leaves(below.over)
        both = (*over, *leaves(top.soft.atoms)) if top.soft is not None else over
        return Mark(call.row, both, keys=_is_keys(top, over))  # or one along either axis
    return _lined_up(marked[0], axes) if len(marked) == 1 else None


def _lined_up(arr: TracedTensor, axes: Axes) -> Mark | None:
    """The softmax of an operand, also along what its axis was lined up with: a copy of it."""
    mark = arr.soft
    assert mark is not None
    own = set(leaves(mark.atoms))
    beside = axes[len(axes) - len(arr.axes) :]
    met = [
        a
        for axis, other in zip(arr.axes, beside, strict=True)
        if own & {*leaves(axis)}
        for a in leaves(other)
        if a not in own
    ]
    return replace(mark, atoms=(*mark.atoms, *met)) if met else mark


def _is_keys(arr: TracedTensor, axis: Axis) -> bool:
    """The axis is where keys are expected: the last one, or one that is a copy of another."""
    return leaves(arr.axes[-1]) == axis or any(a.made == "prime" for a in axis)


def _added(call: Call) -> tuple[Added, ...]:
    """Biases and masks that scores have taken up, for the softmax to look at."""
    before = tuple(one for a in call.arrays for one in a.added)
    if call.name not in MASKING or len(call.arrays) < 2:
        return before if call.name != "where" else ()
    whole = [a for a in call.arrays if a.shape == call.shape]
    other = [a for a in call.arrays if a.shape != call.shape and len(a.shape) > 1]
    return (*before, *(Added(call.row, a) for a in other)) if whole else before


def softmax(flow: Flow, call: Call) -> TracedTensor | None:
    x = call.x
    dim = call.arg(1, "dim")
    if type(dim) is not int:
        dim = 1 if len(x.shape) not in (0, 1, 3) else 0  # what PyTorch takes where nothing is said
    axis: Axis = leaves(x.axes[dim])
    arr = TracedTensor(call.shape, list(x.axes), tiled=x.tiled)
    if axis:
        arr.soft = Mark(call.row, axis, keys=_is_keys(x, axis))
        _idle(flow, call, axis, dim % len(x.shape))
    entries = {id(a) for other in x.axes for a in leaves(other) if a.kind == "batch"}
    if any(a.kind == "batch" for a in axis) and len(entries) == len(axis) == 1:
        flow.report(
            call.row,
            "softmax-axis",
            lambda: (
                f"softmax runs over the batch axis {flow.names.axis(axis)} of "
                f"({', '.join(flow.names.shape(x.axes))}): the entries of a batch share one sum"
            ),
        )
    return arr


def _idle(flow: Flow, call: Call, axis: Axis, dim: int) -> None:
    """All that was added is the same along the softmax's axis: a constant, which cancels."""
    at = dim - len(call.x.shape)  # from the right, as broadcasting counts
    flat = [one for one in call.x.added if not leaves(_axis(one.by, at))]
    if not flat or len(flat) < len(call.x.added):
        return
    named = [a for one in flat for x in one.by.axes for a in leaves(x) if a.kind == "index"]
    if not named:
        return
    flow.report(
        flat[0].row,
        "mask-no-effect",
        lambda: (
            f"({', '.join(flow.names.shape(flat[0].by.axes))}) is the same for all of axis "
            f"{flow.names.axis(axis)}, which the softmax {flow.place(call, flat[0].row)} runs "
            "over: it shifts whole rows and hides no key. Its positions belong on the last axis"
        ),
    )


def _axis(arr: TracedTensor, at: int) -> Axis:
    return arr.axes[at] if -at <= len(arr.axes) else ()


def roll(flow: Flow, call: Call) -> TracedTensor | list[TracedTensor]:
    """Positions are shifted along their axes; an axis between them is one that was not meant."""
    dims = call.arg(2, "dims", ())
    axes = [call.x.axes[d] for d in dims] if isinstance(dims, (list, tuple)) else []
    kinds = [{a.kind for a in leaves(axis)} for axis in axes]
    if {"index"} in kinds and ({"batch"} in kinds or {"feature"} in kinds):
        flow.report(
            call.row,
            "roll-axes",
            lambda: (
                f"roll shifts the axes {' and '.join(map(flow.names.axis, axes))} of "
                f"({', '.join(flow.names.shape(call.x.axes))}) together, of which not all are "
                "positions: count the axes again"
            ),
        )
    return keep_axes(flow, call)


RULES = by_name(
    {
        roll: "roll",
        keep_axes: SAME,
        shaped_like: LIKE,
        combine: BINARY,
        softmax: "softmax softmin gumbel_softmax log_softmax",
        power: "exp exp2",
        normalize: "normalize",
    }
)
