"""Copies of inputs in another form, and what became of those that a call was given."""

from typing import Any

import torch
from torch import Tensor

from attnlab.tracer.cast import Given, fresh


def without_names(given: Given) -> list[Tensor | None]:
    """Copies without names, and without what is None at the end."""
    bare = [t for _, t in fresh(given)]
    while bare and bare[-1] is None:
        bare.pop()
    return bare


def cast_floats(t: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    """In this dtype, where it holds floating-point numbers."""
    return t.to(dtype) if t is not None and t.is_floating_point() else t


def cast_inputs(given: Given, dtype: torch.dtype) -> Given:
    return [(n, cast_floats(t, dtype)) for n, t in given]


def reverse_strides(t: Tensor) -> Tensor:
    """The same values, every second element of twice as many, the axes laid out backwards."""
    if t.dim() < 2:
        return torch.stack((t, t), dim=-1)[..., 0]
    back = list(range(t.dim()))[::-1]
    wide = torch.stack((t, t), dim=-1)[..., 0]
    return wide.permute(back).contiguous().permute(back)


def crop_larger(t: Tensor) -> Tensor:
    """The same values in the corner of a larger tensor: only the last stride is as usual."""
    wide = t.new_zeros([n + 1 for n in t.shape])
    corner = wide[tuple(slice(n) for n in t.shape)]
    return corner.copy_(t)


def expand_first(t: Tensor) -> Tensor:
    """The same values, which lie in memory once where all along the first axis are alike."""
    first = t[:1].expand_as(t)
    return first if t.dim() > 1 and torch.equal(first, t) else t.clone()


WAYS = {"turned": reverse_strides, "cropped": crop_larger, "expanded": expand_first}


def find_overwritten(given: Given, left: Given, versions: list[int]) -> str:
    """The first of the inputs that is not what it was, or was written into all the same; ""."""
    for (name, was), (_, now), version in zip(given, left, versions, strict=True):
        if was is None or now is None:
            continue
        if now._version != version or not _same(was, now):
            return name
    return ""


def _same(was: Tensor, now: Tensor) -> bool:
    """NaN for NaN."""
    if was.dtype != now.dtype:
        return False
    return torch.equal(was, now) or torch.equal(was.nan_to_num(), now.nan_to_num())


def alias(out: Any, given: Given) -> str:
    """The name of the input whose memory the output shares."""
    mine = _memory(out) if isinstance(out, Tensor) else 0
    names = [n for n, t in given if t is not None and mine and _memory(t) == mine]
    return names[0] if names else ""


def _memory(t: Tensor) -> int:
    """Where its storage begins; 0 where it has none."""
    try:
        return t.untyped_storage().data_ptr() if t.numel() else 0
    except Exception:  # sparse and other odd tensors
        return 0
