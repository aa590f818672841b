"""Operations that sum, average or choose along axes."""

from functools import partial

from attnlab.tracer.axes.atoms import Atom, Axes, Axis, leaves, literal
from attnlab.tracer.axes.engine import Flow
from attnlab.tracer.axes.op_call import Call, TracedTensor, by_name
from attnlab.tracer.axes.render_names import HEADS
from attnlab.tracer.axes.rules.products import softmax_axis_message

QUESTIONS = {"any", "all", "argmax", "argmin", "count_nonzero"}  # whose answers are no values


def reduce(flow: Flow, call: Call) -> list[TracedTensor]:
    """The axes that are left; with keepdim an axis of size 1 stays."""
    x, rank = call.x, len(call.x.shape)
    given = call.arg(2 if call.name == "norm" else 1, "dim", call.kwargs.get("axis"))
    if given is None or isinstance(given, bool):
        if x.pooled is not None:  # one number of the whole batch
            flow.statistics.add(x.pooled)
        return [TracedTensor(s, []) for s in call.outs]
    gone = {int(d) % rank for d in (given if isinstance(given, (list, tuple)) else [given])}
    gone = gone or set(range(rank))
    keep = len(call.shape) == rank
    axes = [() if i in gone else a for i, a in enumerate(x.axes) if keep or i not in gone]
    lost = [a for i in gone for a in leaves(x.axes[i])]
    if not keep:  # else it is what the weights are divided by
        _summed(flow, call, tuple(lost))
    pooled = x.pooled
    if call.name not in QUESTIONS and any(a.kind == "batch" for a in lost) and len(gone) < rank:
        pooled = call.row
        if _is_statistic(x, lost):
            flow.statistics.add(call.row)
    found = [TracedTensor(s, list(axes), pooled=pooled) for s in call.outs]
    if call.name in ("sum", "logsumexp"):
        found[0].total, found[0].over, found[0].logs = x, tuple(lost), call.name == "logsumexp"
    return found


def _is_statistic(x: TracedTensor, lost: list[Atom]) -> bool:
    """Positions are averaged away with the batch, as a batch norm does, or there are none."""
    kinds = [a.kind for axis in x.axes for a in leaves(axis)]
    return "index" not in kinds or any(a.kind == "index" for a in lost)


def _summed(flow: Flow, call: Call, lost: Axis) -> None:
    """Weights of a softmax summed over another axis than the one they add up to 1 along."""
    mark = call.x.soft
    if mark is None or call.name != "sum" or not lost or not call.x.weighed:
        return
    over = {id(a) for a in leaves(mark.atoms)}
    data = all(a.kind in ("index", "batch") for a in (*lost, *leaves(mark.atoms)))
    if data and not over & {id(a) for a in lost} and len(call.arrays) == 1 and call.x.tiled is None:
        message = partial(softmax_axis_message, flow, call, mark, lost)
        flow.report(mark.row, "softmax-axis", message)


def running(flow: Flow, call: Call) -> TracedTensor:
    """Cumsum keeps the axes; a running sum over the batch or over heads is one of strangers."""
    x = call.x
    axis = leaves(x.axes[call.dim(1, 0)])
    if call.floats and len(x.shape) > 1 and any(a.kind in ("batch", "feature") for a in axis):
        flow.report(call.row, "batch-contraction", lambda: _strangers(flow, call, axis))
    return TracedTensor(call.shape, list(x.axes))


def _strangers(flow: Flow, call: Call, axis: Axis) -> str:
    name = flow.names.axis(axis)
    what = "entries of the batch" if any(a.kind == "batch" for a in axis) else "heads"
    if what == "heads" and not any(a.name in HEADS for a in axis):
        return ""  # as many as there are heads, by chance
    return f"{call.name} runs over axis {name}: it adds up {what}, which should not see each other"


def topk(flow: Flow, call: Call) -> list[Axes]:
    at = call.dim(1 if call.name == "multinomial" else 2, -1)
    found = []
    for shape in call.outs:
        axes = list(call.x.axes)
        if len(shape) == len(axes):
            axes[at] = literal(shape[at])
        else:
            del axes[at]
        found.append(axes)
    return found


RULES = by_name(
    {
        running: "cumsum cumprod logcumsumexp",
        reduce: "sum mean amax amin prod var std var_mean std_mean logsumexp norm argmax argmin any"
        " all nansum nanmean median nanmedian mode aminmax count_nonzero quantile",
        topk: "topk kthvalue multinomial",
    }
)
