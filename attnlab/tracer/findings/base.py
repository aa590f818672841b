"""Rows with axis names and ancestry, and helpers that every rule of findings uses."""

from collections.abc import Iterator, Sequence

from attnlab.records.trace import Op
from attnlab.tracer.axes.agree import Axes, SizedTrace, input_axes, name_rows
from attnlab.tracer.raw_trace import Shape

# Operations through which data becomes features: what descends from one is no mask any more.
MIXERS = {
    *("linear", "matmul", "bmm", "einsum", "embedding", "conv1d", "conv2d"),
    *("layer_norm", "baddbmm"),
}
# Sums of products.
CONTRACTIONS = (MIXERS - {"layer_norm"}) | {
    *("mm", "mv", "dot", "addmm", "scaled_dot_product_attention")
}
SCORES = {"matmul", "bmm", "einsum", "baddbmm"}  # products of two tensors of data
SOFTMAX = {"softmax", "_softmax"}
REMOVERS = {"squeeze", "squeeze_", "select", "getitem", "unbind"}


class Rows:
    """Rows with axis names and ancestry."""

    def __init__(self, run: SizedTrace, distinct: SizedTrace | None = None) -> None:
        """The rows of a run; `distinct` is the same run at sizes that tell axes apart."""
        self.raw = raw = run.raw
        self.axes = name_rows(run, distinct)
        self.inputs = input_axes(run, distinct)
        self.data: set[int] = set()  # rows with the model's data, as against masks and tables
        self.free: set[int] = set()  # rows that descend from factories alone
        for op in raw.ops:
            if any(p in self.data for p in op.parents) or (op.op in MIXERS and op.parents):
                self.data.add(op.index)
            if len(op.parents) == len(raw.operands[op.index]) and self.free.issuperset(op.parents):
                self.free.add(op.index)

    def made_by_rows(self, op: Op) -> bool:
        """Every operand of `op` is the output of a row."""
        return len(self.raw.operands[op.index]) == sum(p >= 0 for p in op.parents)

    def shape(self, parent: int) -> Shape:
        return self.raw.ops[parent].shape if parent >= 0 else self.raw.inputs[-1 - parent]

    def named(self, parent: int) -> Axes:
        return self.axes[parent] if parent >= 0 else self.inputs[-1 - parent]

    def ancestors(self, start: Sequence[int]) -> Iterator[Op]:
        """Rows that `start` descends from, latest first, up to those that took an axis away."""
        todo = {p for p in start if p >= 0}
        while todo:
            row = max(todo)
            todo.discard(row)
            op = self.raw.ops[row]
            yield op
            first = self.raw.operands[op.index][:1]
            if op.op not in REMOVERS or not first or len(op.shape) >= len(first[0]):
                todo |= {p for p in op.parents if p >= 0}


def show(axes: Sequence[object]) -> str:
    """The names or the sizes of axes, in parentheses."""
    return f"({', '.join(map(str, axes))})"
