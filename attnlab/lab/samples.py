"""What a trace keeps of the values of a tensor: a copy of a small one, three numbers of a large."""

from __future__ import annotations

import torch
from torch import Tensor

SMALL = 1024  # elements: below, a copy costs less than two reductions
KEEP = 1 << 18  # elements that may be copied in all, 1 MiB of float32
Sample = Tensor | tuple[Tensor, Tensor, Tensor, int] | None
_complex: dict[torch.dtype, bool | None] = {}


class Sampler:
    """Takes samples, and copies no more than `KEEP` elements in all."""

    def __init__(self) -> None:
        self.kept = 0

    def __call__(self, t: Tensor, dtype: torch.dtype) -> Sample:
        """A copy, or min, max and sum; None where they mean nothing."""
        count, is_complex = t.numel(), _is_complex(dtype)
        if count == 0 or is_complex is None:
            return None
        try:
            if type(t) is not Tensor:
                t = _as_plain(t)
            if t.requires_grad:
                t = t.detach()
            if is_complex:
                t = torch.view_as_real(t.resolve_conj())
            if count <= SMALL and self.kept + count <= KEEP:
                self.kept += count
                return t.clone()
            return _reduced(t)
        except Exception:  # a dtype without kernels, a subclass that objects: then no range
            return None


def _as_plain(t: Tensor) -> Tensor:
    """A parameter, or a subclass by its values; raises for what only pretends to have some."""
    if type(t).__torch_dispatch__ is not Tensor.__torch_dispatch__:
        raise TypeError("a fake or wrapped tensor")
    with torch._C.DisableTorchFunctionSubclass():
        return t.as_subclass(Tensor)


def _reduced(t: Tensor) -> tuple[Tensor, Tensor, Tensor, int]:
    """Min, max and sum as 0-d tensors, the sum in float32 or wider; and the number of elements."""
    count = t.numel()
    if t.dtype is torch.bool:
        t = t.to(torch.uint8)
    low, high = torch.aminmax(t)
    if t.dtype is torch.float16 or t.dtype is torch.bfloat16:
        return low, high, t.sum(dtype=torch.float32), count
    total = t.sum() if t.is_floating_point() else t.sum(dtype=torch.float64)
    return low, high, total, count


def _is_complex(dtype: torch.dtype) -> bool | None:
    """None for the 8-bit floats, which have no kernels."""
    if dtype not in _complex:
        tiny = dtype.is_floating_point and dtype.itemsize == 1
        _complex[dtype] = None if tiny else dtype.is_complex
    return _complex[dtype]
