"""Which operations are of one kind, and how messages call them."""

import torch

KINDS = """
matmul __matmul__ __rmatmul__ einsum bmm baddbmm linear addmm mm
mul __mul__ __rmul__ div __truediv__ __rtruediv__ __imul__ __itruediv__
add __add__ __radd__ sub __sub__ __rsub__ __iadd__ __isub__
masked_fill masked_fill_ where add __add__ __setitem__
triu tril __gt__ __lt__ __ge__ __le__ gt lt ge le __invert__
view reshape flatten unflatten transpose permute contiguous expand
repeat repeat_interleave expand index_select __getitem__
pow __pow__ __rpow__ exp reciprocal
sin cos
softmax log_softmax
layer_norm rms_norm
"""
FAMILIES = tuple({*line.split()} for line in KINDS.split("\n") if line)


def same_family(mine: str, theirs: str) -> bool:
    """Whether two operations are of one kind: `a @ b` and `einsum`."""
    return mine == theirs or any(mine in family and theirs in family for family in FAMILIES)


def called(op: str) -> str:
    """An operation as no word of English: `to()`, `data`."""
    return f"`{op}()`" if callable(getattr(torch.Tensor, op, len)) else f"`{op}`"
