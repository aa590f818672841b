"""Which tensors are taken for a causal mask."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from attnlab.candidate.live.watching import Masks, is_triangle

N = 6
FULL = torch.ones(N, N)


@pytest.mark.parametrize(
    "mask",
    [
        FULL.tril(),
        FULL.triu(1).bool(),
        FULL.triu(2),
        FULL.tril(-1).bool(),
        torch.full((N, N), float("-inf")).triu(1),
        FULL.tril().expand(2, 1, N, N),
        FULL.tril() * FULL.triu(-3),
    ],
    ids=["tril", "triu", "one-too-far", "one-short", "additive", "batched", "window"],
)
def test_masks_of_the_future_are_triangles(mask: Tensor) -> None:
    """Whatever its type and its diagonal, the mask says that causality was meant."""
    assert is_triangle(mask)


@pytest.mark.parametrize(
    "mask",
    [
        FULL,
        torch.eye(N),
        FULL.tril(1) * FULL.triu(-1),
        (torch.arange(N) > 2).expand(N, N),
        (torch.arange(N) > 0).expand(N, N),
        torch.randn(N, N),
        -(torch.arange(N)[:, None] - torch.arange(N)).abs(),
        torch.ones(2, 3).tril(),
    ],
    ids=["open", "identity", "band", "padding", "all-padding", "scores", "distances", "oblong"],
)
def test_other_masks_are_none(mask: Tensor) -> None:
    """A wrong promise would make a right model broken."""
    assert not is_triangle(mask)


def test_a_mask_that_shows_what_lies_ahead_is_told_where_it_is_made():
    """A band to both sides has a place, a window that ends at the query has none."""
    rows = torch.arange(N)
    apart = rows[:, None] - rows
    with Masks(N) as band:
        apart.abs().lt(3)
    with Masks(N) as window:
        apart.ge(0) & apart.lt(3)
    assert band.wrong is not None
    assert window.wrong is None


@pytest.mark.parametrize("window", [3, 99])
def test_the_mask_that_shows_what_lies_ahead_is_told_among_others(window: int) -> None:
    """Layers in turns have masks of their own; one that is only a part of another is none, and
    one that hides nothing of a short input counts where attention takes it."""
    rows = torch.arange(N)
    apart = rows[:, None] - rows
    x = torch.randn(1, N, 4)
    with Masks(N) as both:
        band = apart.abs().lt(window)[None]
        torch.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=band)
        torch.ones(N, N, dtype=torch.bool).tril()
    with Masks(N) as parts:
        far = apart.abs().ge(window)
        FULL.tril().bool() & ~far
    assert both.wrong is not None
    assert both.wrong.line < parts.made[0][0].line
    assert parts.wrong is None
