"""QK-norm, soft-cap and sinks against PyTorch's own kernels and formulas spelt out (A5)."""

import math

import pytest
import torch
import torch.nn.functional as F
from attention_scenes import build, exact, few, normal, random_mask, randomised, sizes
from hypothesis import given
from torch import nn

from attnlab.references.grouped import GroupedQueryAttention
from attnlab.references.variants import (
    QKNormAttention,
    SinkAttention,
    SoftCapAttention,
    sink_softmax,
    soft_cap,
)


def qkv(module: GroupedQueryAttention, x: torch.Tensor) -> list[torch.Tensor]:
    """(B, H, S, hd) each, keys and values repeated for their groups, without rotation."""
    layers = (module.q_proj, module.k_proj, module.v_proj)
    q, k, v = (torch.stack(f(x).split(module.head_dim, dim=-1), dim=1) for f in layers)
    group = module.num_heads // module.num_kv_heads
    return [q, k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)]


def merged(module: GroupedQueryAttention, context: torch.Tensor) -> torch.Tensor:
    return module.out_proj(torch.cat(context.unbind(1), dim=-1))


@given(sizes(5, 6))
@few
def test_qk_norm_is_attention_over_normalised_heads(n: list[int]) -> None:
    """A5: `F.rms_norm` of queries and keys, then PyTorch's kernel."""
    B, S, Hkv, group, hd = n
    H = Hkv * group
    module = randomised(QKNormAttention(H * hd, H, Hkv))
    x, mask = normal(B, S, H * hd), random_mask(B, 1, S, S)
    q, k, v = qkv(module, x)
    q = F.rms_norm(q, (hd,), module.q_norm.weight, eps=1e-6)
    k = F.rms_norm(k, (hd,), module.k_norm.weight, eps=1e-6)
    context = F.scaled_dot_product_attention(q, k, v, attn_mask=~mask)
    torch.testing.assert_close(module(x, mask), merged(module, context), **exact)


def test_qk_norm_bounds_the_scores() -> None:
    """A5: at most sqrt(hd) times the largest weights, however large x is."""
    module = randomised(QKNormAttention(24, 6, 2))
    q, k, _ = module.project(1000 * normal(3, 5, 24))
    weights = module.q_norm.weight.abs().max() * module.k_norm.weight.abs().max()
    bound = (weights * math.sqrt(4)).item()
    assert module.scores(q, k.repeat_interleave(3, 1)).abs().max().item() <= bound * (1 + 1e-9)


# Run uncompiled, flex_attention warns that it is slow.
@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_the_cap_falls_on_scores_before_the_mask() -> None:
    """A5: equal to `flex_attention` with the cap as its score_mod and the mask as mask_mod."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    module = randomised(SoftCapAttention(32, 2, cap=1.5))
    x, mask = normal(3, 16, 32), random_mask(3, 1, 16, 16)
    allowed = create_block_mask(
        lambda b, h, i, j: ~mask[b, 0, i, j], 3, None, 16, 16, device="cpu", BLOCK_SIZE=16
    )
    with torch.no_grad():
        context = flex_attention(
            *qkv(module, x),
            score_mod=lambda s, b, h, i, j: 1.5 * torch.tanh(s / 1.5),
            block_mask=allowed,
        )
    torch.testing.assert_close(module(x, mask), merged(module, context), rtol=1e-6, atol=1e-6)


def test_a_cap_keeps_order_and_small_scores() -> None:
    """A5: odd, growing, within the cap, and almost the identity near 0."""
    s = torch.linspace(-200, 200, 999, dtype=torch.float64)
    capped = soft_cap(s, 50.0)
    assert capped.abs().max().item() < 50
    assert (capped.diff() > 0).all()
    torch.testing.assert_close(capped, -capped.flip(0))
    small = soft_cap(s / 1000, 50.0)
    torch.testing.assert_close(small, s / 1000, rtol=0, atol=1e-5)


@pytest.mark.parametrize("cap", [0.0, -1.0, math.inf, math.nan])
def test_a_cap_that_is_none_is_refused(cap: float) -> None:
    """A5: naming the value."""
    with pytest.raises(ValueError, match=f"cap={cap}: expected a positive finite number"):
        SoftCapAttention(8, 2, cap=cap)


def test_a_sink_of_zero_is_pytorchs_added_zero() -> None:
    """A5: `nn.MultiheadAttention(add_zero_attn=True)` adds a key and value of zeros."""
    module = randomised(SinkAttention(24, 6))
    nn.init.zeros_(module.sinks)
    twin = nn.MultiheadAttention(24, 6, add_zero_attn=True, batch_first=True).double()
    parts = (module.q_proj, module.k_proj, module.v_proj)
    twin.in_proj_weight = nn.Parameter(torch.cat([part.weight for part in parts]))
    twin.in_proj_bias = nn.Parameter(torch.cat([part.bias for part in parts]))
    twin.out_proj.weight, twin.out_proj.bias = module.out_proj.weight, module.out_proj.bias
    x, mask = normal(3, 5, 24), random_mask(3, 1, 5, 5)
    per_head = mask.expand(3, 6, 5, 5).flatten(0, 1)
    expected = twin(x, x, x, attn_mask=per_head, need_weights=False)[0]
    torch.testing.assert_close(module(x, mask), expected, **exact)


@given(sizes(4))
@few
def test_sinks_stand_in_the_denominator_alone(n: list[int]) -> None:
    """A5: exp(s) / (exp(sink) + sum exp(s)), spelt out; the rest is the sink's."""
    B, H, Sq, Sk = n
    scores, sinks, mask = normal(B, H, Sq, Sk), normal(H), random_mask(B, 1, Sq, Sk)
    exp = scores.exp().masked_fill(mask, 0)
    expected = exp / (sinks.exp()[:, None, None] + exp.sum(dim=-1, keepdim=True))
    found = sink_softmax(scores, sinks, mask)
    torch.testing.assert_close(found, expected)
    assert (found.sum(dim=-1) < 1).all()


def test_a_sink_that_nobody_asks_for_changes_nothing() -> None:
    """A5: at minus infinity it is plain attention; very high, it takes everything."""
    module = randomised(SinkAttention(24, 6, 2))
    plain = GroupedQueryAttention(24, 6, 2).double()
    plain.load_state_dict({k: v for k, v in module.state_dict().items() if k != "sinks"})
    x, mask = normal(3, 5, 24), random_mask(3, 1, 5, 5)
    nn.init.constant_(module.sinks, -math.inf)
    torch.testing.assert_close(module(x, mask), plain(x, mask), **exact)
    nn.init.constant_(module.sinks, 1000.0)
    torch.testing.assert_close(module(x, mask), module.out_proj.bias.expand(3, 5, 24))


def test_another_number_of_sinks_than_heads_is_refused() -> None:
    """A5: one sink would be broadcast over all heads."""
    with pytest.raises(ValueError, match=r"sinks has shape \(1,\): expected \(H,\) = \(3,\)"):
        sink_softmax(torch.zeros(2, 3, 4, 5), torch.zeros(1))


def test_joined_variants_norm_then_cap_then_sink() -> None:
    """A5: each overrides one step, so all three take part, in the order of the formula."""
    module = build("all-in-one")
    module.rotate = None
    x, mask = normal(3, 5, 24), random_mask(3, 6, 5, 5)
    q, k, v = qkv(module, x)
    q = F.rms_norm(q, (4,), module.q_norm.weight, eps=1e-6)
    k = F.rms_norm(k, (4,), module.k_norm.weight, eps=1e-6)
    scores = 2 * torch.tanh(torch.einsum("bhid,bhjd->bhij", q, k) / 2 / 2)
    context = sink_softmax(scores, module.sinks, mask) @ v
    torch.testing.assert_close(module(x, mask), merged(module, context), **exact)
