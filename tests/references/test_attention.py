"""The reference attention against PyTorch's own, and its own laws (A1, A3, B10)."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from attnlab.references.attention import MultiHeadSelfAttention

few = settings(max_examples=20, deadline=None)
different_sizes = st.lists(st.integers(2, 7), min_size=4, max_size=4, unique=True)


def build(H: int, hd: int) -> MultiHeadSelfAttention:
    """A module in float64 whose norm and biases are not the trivial ones of a fresh module."""
    module = MultiHeadSelfAttention(H * hd, H).double()
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.5)
    return module


def random_mask(B: int, S: int) -> Tensor:
    """True forbids; every query keeps itself, so that no row is empty."""
    return (torch.rand(B, S, S) < 0.5) & ~torch.eye(S, dtype=torch.bool)


def scene(sizes: list[int]) -> tuple[MultiHeadSelfAttention, Tensor, Tensor]:
    B, S, H, hd = sizes
    torch.manual_seed(hash(tuple(sizes)))
    return build(H, hd), torch.randn(B, S, H * hd, dtype=torch.float64), random_mask(B, S)


def pytorch_attention(module: MultiHeadSelfAttention, x: Tensor, mask: Tensor | None) -> Tensor:
    """The branch before norm and residual, by `nn.MultiheadAttention` with the same weights."""
    twin = nn.MultiheadAttention(module.embed_dim, module.num_heads, batch_first=True).double()
    twin.in_proj_weight, twin.in_proj_bias = module.qkv_proj.weight, module.qkv_proj.bias
    twin.out_proj.weight, twin.out_proj.bias = module.out_proj.weight, module.out_proj.bias
    per_head = None if mask is None else mask.repeat_interleave(module.num_heads, dim=0)
    return twin(x, x, x, attn_mask=per_head, need_weights=False)[0]


@given(different_sizes, st.booleans())
@few
def test_equals_pytorch_multihead_attention(sizes: list[int], masked: bool) -> None:
    """A1: with the same weights it is `nn.MultiheadAttention`, then the norm, then plus x."""
    module, x, mask = scene(sizes)
    mask = mask if masked else None
    expected = module.norm(pytorch_attention(module, x, mask)) + x
    torch.testing.assert_close(module(x, mask), expected, rtol=1e-10, atol=1e-10)


@given(different_sizes)
@few
def test_equals_fused_attention_with_the_opposite_mask(sizes: list[int]) -> None:
    """A1, A3: equal to `F.scaled_dot_product_attention`, whose True means "may attend"."""
    module, x, mask = scene(sizes)
    B, S, H, hd = sizes
    qkv = module.qkv_proj(x).view(B, S, 3, H, hd).permute(2, 0, 3, 1, 4)
    context = F.scaled_dot_product_attention(*qkv.unbind(0), attn_mask=~mask[:, None])
    merged = torch.einsum("bhsd->bshd", context).reshape(B, S, H * hd)
    expected = module.norm(module.out_proj(merged)) + x
    torch.testing.assert_close(module(x, mask), expected, rtol=1e-10, atol=1e-10)


def test_a_mask_that_forbids_nothing_is_no_mask() -> None:
    """A1: None and all-False give the same answer."""
    module, x, mask = scene([3, 5, 2, 4])
    torch.testing.assert_close(module(x, torch.zeros_like(mask)), module(x))


def test_x_is_added_outside_the_norm() -> None:
    """A1: neither post-norm nor pre-norm: a norm that gives zeros leaves exactly x."""
    module, x, mask = scene([3, 5, 2, 4])
    nn.init.zeros_(module.norm.weight)
    nn.init.zeros_(module.norm.bias)
    assert torch.equal(module(x, mask), x)


@given(different_sizes)
@few
def test_sequences_of_a_batch_do_not_meet(sizes: list[int]) -> None:
    """C6: each sequence alone gives what it gives inside the batch."""
    module, x, mask = scene(sizes)
    alone = torch.cat([module(x[b : b + 1], mask[b : b + 1]) for b in range(len(x))])
    torch.testing.assert_close(module(x, mask), alone, rtol=1e-10, atol=1e-10)


@given(different_sizes)
@few
def test_a_masked_key_changes_nothing(sizes: list[int]) -> None:
    """C6: forbid key 0 to all other queries, replace it: their outputs stay to the last bit."""
    module, x, mask = scene(sizes)
    mask[:, 1:, 0] = True
    other = x.clone()
    other[:, 0] = 100 * torch.randn_like(x[:, 0])
    assert torch.equal(module(other, mask)[:, 1:], module(x, mask)[:, 1:])


@given(different_sizes)
@few
def test_permuted_positions_give_permuted_outputs(sizes: list[int]) -> None:
    """B10: without positions self-attention is permutation-equivariant."""
    module, x, mask = scene(sizes)
    order = torch.randperm(x.shape[1])
    moved = module(x[:, order], mask[:, order][:, :, order])
    torch.testing.assert_close(moved, module(x, mask)[:, order], rtol=1e-10, atol=1e-10)


def test_an_empty_row_has_a_context_of_zeros() -> None:
    """A4: a query that may attend to nothing is left with `norm(out_proj.bias) + x`."""
    module, x, mask = scene([3, 5, 2, 4])
    mask[1, 2] = True
    out = module(x, mask)
    torch.testing.assert_close(out[1, 2], module.norm(module.out_proj.bias) + x[1, 2])
    mask[1, 2] = False
    kept = torch.ones(3, 5, dtype=torch.bool)
    kept[1, 2] = False
    torch.testing.assert_close(out[kept], module(x, mask)[kept])


def test_gradients_are_right_where_a_row_is_empty() -> None:
    """A4: they agree with finite differences, and no step of the backward pass makes a NaN."""
    module, x, mask = scene([2, 3, 2, 4])
    mask[1, 2] = True
    mask[0] = True
    with torch.autograd.set_detect_anomaly(True):
        assert torch.autograd.gradcheck(lambda t: module(t, mask), x.requires_grad_())
        module(x, mask).sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in module.parameters() if p.grad is not None)


def test_the_weights_have_the_agreed_names() -> None:
    """A1: `qkv_proj`, `out_proj` and `norm`, with biases, and nothing else."""
    shapes = {k: tuple(v.shape) for k, v in MultiHeadSelfAttention(6, 3).state_dict().items()}
    assert shapes == {
        "qkv_proj.weight": (18, 6),
        "qkv_proj.bias": (18,),
        "out_proj.weight": (6, 6),
        "out_proj.bias": (6,),
        "norm.weight": (6,),
        "norm.bias": (6,),
    }


def test_keeps_type_inputs_and_mode() -> None:
    """It answers in the type of its weights, under no_grad too, and leaves its arguments alone."""
    module, x, mask = scene([3, 5, 2, 4])
    before = x.clone(), mask.clone()
    with torch.no_grad():
        out = module(x, mask)
        single = module.float()(x.float(), mask)
    assert out.dtype == torch.float64
    assert single.dtype == torch.float32
    assert out.shape == x.shape
    assert not out.requires_grad
    assert torch.equal(x, before[0])
    assert torch.equal(mask, before[1])


@pytest.mark.parametrize(
    ("embed_dim", "num_heads"), [(7, 2), (4, 0), (0, 1), (8, -2), (-8, 2), (2, 4)]
)
def test_widths_that_do_not_split_into_heads_are_refused(embed_dim: int, num_heads: int) -> None:
    """A1: the message names both numbers and what is expected."""
    said = f"embed_dim={embed_dim}, num_heads={num_heads}: expected .* a multiple of num_heads"
    with pytest.raises(ValueError, match=said):
        MultiHeadSelfAttention(embed_dim, num_heads)


@pytest.mark.parametrize("shape", [(5, 8), (3, 5, 7), (3, 2, 5, 8), (8,)])
def test_an_x_of_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    """A1: rank and width of x are checked before anything is computed."""
    with pytest.raises(ValueError, match=rf"x has shape \({shape[0]}.*expected .* with D = 8"):
        MultiHeadSelfAttention(8, 2)(torch.randn(shape))


@pytest.mark.parametrize("shape", [(5, 5), (1, 5, 5), (3, 1, 5), (3, 2, 5, 5), (5, 3, 5)])
def test_a_mask_that_would_only_broadcast_is_refused(shape: tuple[int, ...]) -> None:
    """A1: an (S, S) mask must not slip through `unsqueeze(1)`; the message says how to expand."""
    mask = torch.zeros(shape, dtype=torch.bool)
    said = r"mask has shape .*: expected \(B, S, S\) = \(3, 5, 5\).*expand\(3, 5, 5\)"
    with pytest.raises(ValueError, match=said):
        MultiHeadSelfAttention(8, 2)(torch.randn(3, 5, 8), mask)


@pytest.mark.parametrize("value", [0.0, -math.inf])
def test_a_float_mask_is_refused(value: float) -> None:
    """A1: an additive mask is refused with a message that says how to convert it."""
    with pytest.raises(TypeError, match=r"mask has dtype torch.float32: expected torch.bool.*-inf"):
        MultiHeadSelfAttention(8, 2)(torch.randn(3, 5, 8), torch.full((3, 5, 5), value))
