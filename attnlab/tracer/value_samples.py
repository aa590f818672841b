"""What a trace keeps of the values of a tensor: a small one, three numbers of a large one.

A copy costs as much as the operation that made the tensor. So a small tensor of its own is lent:
it is kept as it is until somebody is about to write into it, and only then copied.
"""

from functools import cache

import torch
from torch import Tensor

SMALL = 1024  # elements: below, a copy costs less than two reductions
KEEP = 1 << 18  # elements that may be kept in all, 1 MiB of float32
Loan = list[Tensor | int | None]  # a tensor and its version; None for a copy
# Min, max, sum and number of elements; on the CPU numbers at once, for the small tensors that hold
# them would lie scattered among the model's own and keep their memory from being used again.
Reduced = tuple[Tensor | float, Tensor | float, Tensor | float, int]
Sample = Tensor | Reduced | Loan | None
COMMON = {torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.bool}


class Sampler:
    """Takes samples, and keeps no more than `KEEP` elements in all."""

    def __init__(self) -> None:
        self.kept = 0
        self.loans: dict[int, list[Loan]] = {}  # by storage

    def __call__(self, t: Tensor, dtype: torch.dtype, storage: int, own: bool) -> Sample:
        """What is kept of a tensor; None where its numbers mean nothing.

        `own` says that nobody had its storage before: a view would keep all of what it looks at.
        """
        count = t.numel()
        if type(t) is Tensor and 0 < count <= SMALL and dtype in COMMON:
            lend = (own or storage in self.loans) and not t.requires_grad and not t.is_inference()
            if lend and self.kept < KEEP:
                self.kept += count
                loan: Loan = [t, t._version]
                self.loans.setdefault(storage, []).append(loan)
                return loan
        is_complex = _is_complex(dtype)
        if count == 0 or is_complex is None:
            return None
        try:
            with torch._C.DisableTorchFunction():  # another trace around this one sees none of it
                return self._take_sample(t, is_complex, count)
        except Exception:  # a dtype without kernels, a subclass that objects: then no range
            return None

    def _take_sample(self, t: Tensor, is_complex: bool, count: int) -> Sample:
        if type(t) is not Tensor:
            t = _as_plain(t)
        if t.requires_grad:
            t = t.detach()
        if is_complex:
            t = torch.view_as_real(t.resolve_conj())
        if count <= SMALL and self.kept < KEEP:
            self.kept += count
            return t.clone()
        return _reduced(t)

    def settle(self, storages: list[int]) -> None:
        """Copy what was lent of these storages: they are about to be written to."""
        for storage in storages:
            for loan in self.loans.pop(storage, ()):
                assert isinstance(loan[0], Tensor)
                with torch._C.DisableTorchFunction():
                    loan[:] = [loan[0].clone(), None]


def settled(sample: Sample) -> Tensor | Reduced | None:
    """A sample at the end of the run; None for a loan that somebody wrote into unseen."""
    if not isinstance(sample, list):
        return sample
    tensor, version = sample
    assert isinstance(tensor, Tensor)
    return tensor if version is None or tensor._version == version else None


def _as_plain(t: Tensor) -> Tensor:
    """A parameter, or a subclass by its values; raises for what only pretends to have some."""
    if type(t).__torch_dispatch__ is not Tensor.__torch_dispatch__:
        raise TypeError("a fake or wrapped tensor")
    with torch._C.DisableTorchFunctionSubclass():
        return t.as_subclass(Tensor)


def _reduced(t: Tensor) -> Reduced:
    """Min, max and sum, the sum in float32 or wider; and the number of elements."""
    count = t.numel()
    if t.dtype is torch.bool:
        t = t.to(torch.uint8)
    low, high = torch.aminmax(t)
    if t.dtype is torch.float16 or t.dtype is torch.bfloat16:
        total = t.sum(dtype=torch.float32)
    else:
        total = t.sum() if t.is_floating_point() else t.sum(dtype=torch.float64)
    return (low.item(), high.item(), total.item(), count) if t.is_cpu else (low, high, total, count)


@cache
def _is_complex(dtype: torch.dtype) -> bool | None:
    """None for the 8-bit floats, which have no kernels."""
    tiny = dtype.is_floating_point and dtype.itemsize == 1
    return None if tiny else dtype.is_complex
