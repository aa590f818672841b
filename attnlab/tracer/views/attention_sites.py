"""Find where a trace computes attention: rows by their role.

Weights are what a softmax makes (or an exponential over its own sum) that then meets a product
with the values. Up from there stand the mask and the scores, down from there the context.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from attnlab.records.trace import Op

FUSED = {"scaled_dot_product_attention"}
SOFTMAX = {"softmax", "_softmax", "softmax_"}
PRODUCTS = {"matmul", "bmm", "mm", "baddbmm", "einsum", "tensordot", "mv"}
MASKING = {"masked_fill", "masked_fill_", "where", "add", "add_", "iadd", "setitem", "sub"}
# What leaves a matrix of scores or weights what it is.
SAME = {
    *("to", "float", "half", "bfloat16", "double", "type", "type_as", "contiguous", "clone"),
    *("div", "div_", "mul", "mul_", "true_divide", "truediv", "nan_to_num", "dropout", "dropout_"),
    *("clamp", "tanh", "detach", "where", "masked_fill", "masked_fill_", "add", "add_", "iadd"),
    *("sub", "sub_", "setitem", "requires_grad_"),
}
VIEWS = {
    *("view", "reshape", "unsqueeze", "squeeze", "expand", "transpose", "permute", "flatten"),
    *("unflatten", "getitem", "view_as", "reshape_as", "mT", "swapaxes", "movedim"),
}
FAR = 16  # steps from the softmax to what it was made of, or is used for


class Site(NamedTuple):
    """One attention. `chain` are the rows from the scores' product down to the softmax."""

    soft: int  # the row of the softmax; of a fused attention, its only row
    weights: int
    context: int
    entry: int | None  # the row that goes into the softmax
    chain: tuple[int, ...]
    fused: bool = False


def find_sites(ops: Sequence[Op]) -> Iterator[Site]:
    """Every attention of a trace, in order."""
    children: dict[int, list[int]] = defaultdict(list)
    for op in ops:
        for parent in op.parents:
            children[parent].append(op.index)
    for op in ops:
        if op.op in FUSED:
            yield Site(op.index, op.index, op.index, None, (), fused=True)
            continue
        entry = _entry(ops, op)
        path = _path(ops, children, op.index) if entry is not None else []
        if path and entry is not None:
            *kept, context = path
            same = [i for i in kept if ops[i].op not in VIEWS and ops[i].shape == op.shape]
            chain = tuple(_chain(ops, entry)) if entry >= 0 else ()
            yield Site(op.index, same[-1], context, entry if entry >= 0 else None, chain)


def _entry(ops: Sequence[Op], op: Op) -> int | None:
    """The row (or input) whose softmax this is, None for what is no softmax."""
    if op.op in SOFTMAX:
        return op.parents[0] if op.parents else None
    if op.op not in ("div", "truediv", "true_divide", "div_") or len(op.parents) < 2:
        return None
    above, below = op.parents[:2]
    total = _nearest(ops, below, "sum")
    power = _nearest(ops, above, "exp")
    if total is None or power is None or power not in _ancestors(ops, total):
        return None
    entry = ops[power].parents[0] if ops[power].parents else None
    shift = ops[entry] if entry is not None and entry >= 0 else None
    if shift is not None and shift.op == "sub" and shift.parents:
        return shift.parents[0]  # minus the largest one, which changes nothing
    return entry


def _upward(ops: Sequence[Op], row: int, steps: int) -> Iterator[int]:
    """The row and the first operands that it was made of, through what changes little."""
    for _ in range(steps):
        yield row
        before = [p for p in ops[row].parents if p >= 0]
        if ops[row].op not in SAME | VIEWS or not before:
            return
        row = before[0]


def _nearest(ops: Sequence[Op], parent: int, name: str) -> int | None:
    """The nearest row above of this name."""
    rows = _upward(ops, parent, 4) if parent >= 0 else ()
    return next((row for row in rows if ops[row].op == name), None)


def _ancestors(ops: Sequence[Op], row: int) -> set[int]:
    found, now = set[int](), {row}
    for _ in range(4):
        now = {p for i in now if i >= 0 for p in ops[i].parents}
        found |= now
    return found


def _path(ops: Sequence[Op], children: dict[int, list[int]], start: int) -> list[int]:
    """From the weights to the product with the values; empty where there is none."""
    paths = [[start]]
    for _ in range(FAR):
        longer = []
        for path in paths:
            for child in children[path[-1]]:
                if ops[child].op in PRODUCTS or _is_sum_of_product(ops, child):
                    return [*path, child]
                if ops[child].op in SAME | VIEWS:
                    longer.append([*path, child])
        paths = longer[:FAR]
    return []


def _is_sum_of_product(ops: Sequence[Op], row: int) -> bool:
    """`(weights[..., None] * v).sum(-2)`."""
    op = ops[row]
    if op.op != "sum" or not op.parents or op.parents[0] < 0:
        return False
    product = ops[op.parents[0]]
    return product.op == "mul" and len(product.parents) > 1


def _chain(ops: Sequence[Op], entry: int) -> Iterator[int]:
    """Rows from what goes into the softmax up to the product that made the scores."""
    at = entry
    for _ in range(FAR):
        yield at
        before = [p for p in ops[at].parents if p >= 0]
        if ops[at].op in PRODUCTS or ops[at].op not in SAME | VIEWS or not before:
            return
        at = next((p for p in before if _leads_to_product(ops, p)), before[0])


def _leads_to_product(ops: Sequence[Op], row: int) -> bool:
    return any(ops[i].op in PRODUCTS for i in _upward(ops, row, FAR))
