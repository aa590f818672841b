"""Findings about what a loss compares: random numbers that only one of its sides has."""

from collections.abc import Iterator

from attnlab.records.trace import Finding, Op
from attnlab.tracer.findings.base import MIXERS, Rows, show
from attnlab.tracer.raw_trace import finding_at, line_of

LOSSES = {
    *("cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"),
    *("binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div"),
}
FACTORS = {"mul", "rmul"}
SUMS = {"add", "add_", "iadd", "radd", "sub", "isub", "rsub", "truediv", "div", *FACTORS}
CUTS = {
    *("argmax", "argmin", "argsort", "one_hot", "detach", "round", "floor", "sign", "bincount"),
    *("eq", "ne", "lt", "gt", "le", "ge", "histc", "long", "int", "multinomial", "unique"),
}
FEATURES = {"linear", "layer_norm", "rms_norm", "embedding"}  # whose last axis holds them
SAME = {"dropout", "to", "float", "contiguous", "relu", "gelu", "tanh", "add", "detach"}
DRAWS = {"randn", "randn_like", "rand", "rand_like", "randperm", "normal", "normal_"}


def unpaired_draws(rows: Rows) -> Iterator[Finding]:
    """Targets with a draw of their own, where the scores have another of the same kind."""
    ops = rows.raw.ops
    for op in ops:
        if op.op in LOSSES and len(op.parents) > 1:
            scores, target = (_draws(rows, parent) for parent in op.parents[:2])
            if scores is None or target is None or not _learned(rows, op.parents[0]):
                continue
            if _learned(rows, op.parents[1]):
                continue  # a teacher's answer to a view of its own
            own = [d for row, d in target.items() if row not in scores]
            for draw in own:
                twins = [
                    s
                    for row, s in scores.items()
                    if row not in target and (s.op, s.shape) == (draw.op, draw.shape)
                ]
                if twins:
                    yield finding_at(
                        draw,
                        "draws-differ",
                        f"the targets are made with this {draw.op}, and the model's input with "
                        f"another one (line {twins[0].line}): the two are drawn apart, so nothing "
                        "in the input tells the target. Draw once and use it for both",
                    )
                    return


def idle_terms(rows: Rows) -> Iterator[Finding]:
    """A term of a loss that is made of the model's numbers, by operations without a gradient."""
    ops = rows.raw.ops
    for start in rows.raw.flow.outputs:
        todo = [start]
        while todo:
            row = todo.pop()
            if row < 0 or ops[row].op not in SUMS or ops[row].shape:
                continue
            op = ops[row]
            terms = op.parents[:1] if "div" in op.op else op.parents  # by counts it may be divided
            todo += terms
            if op.op in FACTORS:  # what has no gradient of its own may weigh what has one
                continue
            alive = [p for p in terms if p in rows.raw.flow.graded]
            for term in set(terms) - set(alive):
                if term >= 0 and alive and _learned(rows, term) and not ops[term].shape:
                    cut = max((o.index for o in _ancestors(rows, term) if o.op in CUTS), default=-1)
                    at = ops[cut if cut >= 0 else term]
                    yield finding_at(
                        at,
                        "term-without-gradient",
                        f"a term of the loss ({line_of(op, at.file)}) is made of the model's "
                        "numbers, but each way back to them goes through an operation without a "
                        f"gradient, such as this {ops[cut].op}: it changes the loss and "
                        "teaches nothing",
                    )
                    return


def batch_norms(rows: Rows) -> Iterator[Finding]:
    """Vectors that are divided by a norm over the batch, or over positions."""
    numbers = dict(rows.raw.flow.numbers)
    for op in rows.raw.ops:
        given = dict(numbers.get(op.index, ()))
        axis = given.get("dim", given.get("2"))
        if op.op != "normalize" or len(op.shape) < 2:
            continue
        if axis == 1 and "dim" not in op.source and _has_features_last(rows, op):
            yield finding_at(
                op,
                "norm-axis",
                f"normalize divides {show(rows.axes[op.index])} by norms over axis 1, its default, "
                f"and axis 1 is {rows.axes[op.index][1]}: each position's vector depends on the "
                "other positions. Normalise over the features, dim=-1",
            )
        if axis == 0 and str(rows.axes[op.index][0]) == "B":
            yield finding_at(
                op,
                "batch-contraction",
                f"normalize divides {show(rows.axes[op.index])} by norms over axis 0, the batch: "
                "each sample depends on the others. Normalise over the features, dim=-1",
            )


def _has_features_last(rows: Rows, op: Op) -> bool:
    """Whether it is given (B, S, D) as a layer of features made it."""
    made = rows.raw.ops[op.parents[0]] if op.parents and op.parents[0] >= 0 else op
    while made.op in SAME and made.parents and made.parents[0] >= 0:
        made = rows.raw.ops[made.parents[0]]
    return len(op.shape) == 3 and made.op in FEATURES


def _draws(rows: Rows, start: int) -> dict[int, Op] | None:
    """The random draws that a row descends from."""
    if start < 0:
        return None
    return {op.index: op for op in _ancestors(rows, start) if op.op in DRAWS}


def _learned(rows: Rows, start: int) -> bool:
    return any(op.op in MIXERS for op in _ancestors(rows, start)) if start >= 0 else False


def _ancestors(rows: Rows, start: int) -> Iterator[Op]:
    todo, seen = [start], {start}
    while todo:
        op = rows.raw.ops[todo.pop()]
        yield op
        fresh = {p for p in op.parents if p >= 0} - seen
        seen |= fresh
        todo += fresh
