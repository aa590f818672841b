"""What the tests of the attention references share: classes, weights, inputs, masks."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

import torch
from hypothesis import settings
from hypothesis import strategies as st
from torch import Tensor, nn

from attnlab.references.grouped import GroupedQueryAttention, MultiQueryAttention
from attnlab.references.variants import QKNormAttention, SinkAttention, SoftCapAttention

M = TypeVar("M", bound=nn.Module)
few = settings(max_examples=12, deadline=None)
exact = {"rtol": 1e-9, "atol": 1e-9}


def sizes(count: int, high: int = 7) -> st.SearchStrategy[list[int]]:
    """Pairwise different sizes: what mixes up two axes cannot hide."""
    return st.lists(st.integers(2, high), min_size=count, max_size=count, unique=True)


class AllInOne(QKNormAttention, SoftCapAttention, SinkAttention):
    """The three variants joined, as their docstring says they may be."""


def spin(t: Tensor, positions: Tensor) -> Tensor:
    """A rotation by position that no library has: each feature pair (i, i + hd/2) by 0.3 * p."""
    a, b = t.chunk(2, dim=-1)
    angle = 0.3 * positions.to(t.dtype)
    angle = angle[:, None, :, None] if angle.dim() == 2 else angle[:, None]
    return torch.cat((a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()), -1)


# Six query heads over two key heads: H / Hkv = 3 differs from Hkv. Head width 4.
D, H, HD = 24, 6, 4
CACHED: dict[str, Callable[[], GroupedQueryAttention]] = {
    "heads": functools.partial(GroupedQueryAttention, D, H),
    "grouped": functools.partial(GroupedQueryAttention, D, H, 2, rotate=spin),
    "one-head": functools.partial(MultiQueryAttention, D, H, bias=False, rotate=spin),
    "qk-norm": functools.partial(QKNormAttention, D, H, 2, rotate=spin),
    "soft-cap": functools.partial(SoftCapAttention, D, H, 2, cap=2.0),
    "sinks": functools.partial(SinkAttention, D, H, 3, rotate=spin),
    "all-in-one": functools.partial(AllInOne, D, H, 2, cap=2.0, rotate=spin),
}
cached = st.sampled_from(sorted(CACHED))


def randomised(module: M, seed: int = 0) -> M:
    """In float64 and evaluation, with no weight that a fresh module leaves at 0 or 1."""
    torch.manual_seed(seed)
    module = module.double().eval()
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.5)
    return module


def build(name: str, seed: int = 0) -> GroupedQueryAttention:
    return randomised(CACHED[name](), seed)


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def random_mask(*shape: int) -> Tensor:
    """True forbids; key 0 stays free, so that no row is empty."""
    mask = torch.rand(*shape) < 0.5
    mask[..., 0] = False
    return mask
