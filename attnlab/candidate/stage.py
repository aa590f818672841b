"""What a stage asks of a program: values of expressions, and how much was computed for them."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from attnlab.tracer.nested_tensors import tensors_in

# The files of a check's lines, in a traceback.
STAGE_SETUP, STAGE_VALUE = "<setup>", "<value>"
SPREAD = 0.3  # of new parameters: large enough for each to show
FUSED = F.scaled_dot_product_attention
PRODUCTS: set[Any] = {
    torch.matmul, torch.mm, torch.bmm, torch.addmm, Tensor.matmul, Tensor.mm, Tensor.bmm,
    Tensor.__matmul__, Tensor.__rmatmul__,
}  # fmt: skip


class ComputeMeter(TorchFunctionMode):
    """Counts the rows that go through each weight, and notes the largest tensor that is made."""

    def __init__(self, weights: Iterable[Tensor]) -> None:
        super().__init__()
        self.weights = {_storage(weight) for weight in weights}
        self.rows: Counter[int] = Counter()  # by the storage of the weight
        self.largest: tuple[int, ...] = ()  # its shape

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        if func is F.linear:
            x, weight = (args + tuple(kwargs.values()))[:2]
            self.rows[_storage(weight)] += x.numel() // x.shape[-1]
        elif func in PRODUCTS:
            self._count(*[tensor for tensor in args if isinstance(tensor, Tensor)][-2:])
        elif func is torch.einsum:
            self._count_einsum(args[0], list(tensors_in(args[1:])))
        elif func is FUSED:  # taken for one that makes its scores: which kernel runs is not ours
            query, key = (args + tuple(kwargs.values()))[:2]
            self._note((*query.shape[:-1], key.shape[-2]))
        for tensor in tensors_in(out):
            if not isinstance(tensor, nn.Parameter):
                self._note(tuple(tensor.shape))
        return out

    def _count(self, left: Tensor, right: Tensor) -> None:
        for weight, other, width in ((left, right, left.shape[-1]), (right, left, left.shape[-1])):
            if _storage(weight) in self.weights:
                self.rows[_storage(weight)] += other.numel() // max(width, 1)

    def _count_einsum(self, equation: Any, operands: Sequence[Tensor]) -> None:
        if not isinstance(equation, str) or "." in equation:
            return
        names, _, output = equation.replace(" ", "").partition("->")
        axes = dict(zip(names.split(","), operands, strict=False))
        for mine, weight in axes.items():
            for theirs, other in axes.items():
                if mine is not theirs and _storage(weight) in self.weights:
                    sizes = zip(theirs, other.shape, strict=False)
                    summed = prod(n for name, n in sizes if name in mine and name not in output)
                    self.rows[_storage(weight)] += other.numel() // max(summed, 1)

    def _note(self, shape: tuple[int, ...]) -> None:
        if prod(shape) > prod(self.largest) or not self.largest:
            self.largest = shape


def fill_new(module: nn.Module, old: Iterable[Tensor]) -> None:
    """Give parameters that are none of the `old` ones values that depend on their shapes alone, so
    that two programs which name them differently have the same."""
    known, seen = {id(tensor) for tensor in old}, Counter[tuple[int, ...]]()
    for parameter in module.parameters():
        if id(parameter) in known:
            continue
        shape = tuple(parameter.shape)
        dice = torch.Generator().manual_seed(sum(shape) + 1000 * seen[shape])
        values = torch.randn(shape, generator=dice, dtype=torch.float64) * SPREAD
        parameter.data.copy_(values)
        seen[shape] += 1


def plain_value(value: Any) -> Any:
    """A value as it goes over the wire: tensors, numbers, texts, lists and dicts of them."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        return {str(key): plain_value(each) for key, each in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain_value(each) for each in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return f"a {type(value).__name__}"


def _storage(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()
