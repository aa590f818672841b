"""T5, ALiBi and Transformer-XL against transformers and x-transformers (B7)."""

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import math

import pytest
import torch
from torch import Tensor, nn

from attnlab.references.alibi import ALiBi, alibi_bias, alibi_slopes
from attnlab.references.relative import T5RelativeBias, relative_distance, t5_buckets
from attnlab.references.transformer_xl import (
    TransformerXLAttention,
    rel_shift,
    relative_sinusoids,
)

transformers = pytest.importorskip("transformers", minversion="5.0")
x_transformers = pytest.importorskip("x_transformers")

D, H = 24, 6  # not a power of two


def normal(*shape: int) -> Tensor:
    torch.manual_seed(sum(shape))
    return torch.randn(shape)


def t5_attention(num_buckets: int, max_distance: int, *, decoder: bool) -> nn.Module:
    from transformers.models.t5.modeling_t5 import T5Attention

    config = transformers.T5Config(
        d_model=D,
        d_kv=D // H,
        num_heads=H,
        relative_attention_num_buckets=num_buckets,
        relative_attention_max_distance=max_distance,
        is_decoder=decoder,
        dropout_rate=0.0,
        attn_implementation="eager",
    )
    module = T5Attention(config, has_relative_attention_bias=True, layer_idx=0).eval()
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.3)
    return module


def t5_bias(theirs: nn.Module, num_buckets: int, max_distance: int, *, decoder: bool) -> nn.Module:
    ours = T5RelativeBias(H, num_buckets, max_distance, bidirectional=not decoder)
    ours.load_state_dict(theirs.state_dict(), strict=False)
    return ours


@pytest.mark.parametrize(("num_buckets", "far"), [(32, 128), (8, 20), (64, 256), (4, 9), (32, 300)])
@pytest.mark.parametrize("bidirectional", [True, False])
def test_t5_buckets_of_both_libraries(num_buckets: int, far: int, bidirectional: bool) -> None:
    """B7: at every distance within 2 * far, edges too."""
    from transformers.models.t5.modeling_t5 import T5Attention
    from x_transformers.x_transformers import RelativePositionBias

    distance = torch.arange(-2 * far, 2 * far + 1)
    ours = t5_buckets(distance, num_buckets, far, bidirectional=bidirectional)
    theirs = T5Attention._relative_position_bucket(distance, bidirectional, num_buckets, far)
    assert torch.equal(ours, theirs)
    theirs = RelativePositionBias._relative_position_bucket(
        distance, not bidirectional, num_buckets, far
    )
    assert torch.equal(ours, theirs)


@pytest.mark.parametrize("decoder", [False, True])
@pytest.mark.parametrize(("Q", "past"), [(7, 0), (1, 6), (3, 150)])
def test_t5_bias_with_and_without_a_cache(decoder: bool, Q: int, past: int) -> None:
    """B7: queries at the end of the keys, as past_seen_tokens puts them."""
    theirs = t5_attention(32, 128, decoder=decoder)
    expected = theirs.compute_bias(Q, past + Q, past_seen_tokens=past)[0]
    assert torch.equal(t5_bias(theirs, 32, 128, decoder=decoder).bias(Q, past + Q), expected)


def test_t5_attention_does_not_divide_its_scores() -> None:
    """B7: the whole encoder layer, from unscaled scores and this bias."""
    theirs = t5_attention(8, 20, decoder=False)
    x = normal(3, 11, D)
    q, k, v = (p(x).view(3, 11, H, -1).transpose(1, 2) for p in (theirs.q, theirs.k, theirs.v))
    weights = t5_bias(theirs, 8, 20, decoder=False)(q @ k.mT).softmax(-1)
    ours = theirs.o((weights @ v).transpose(1, 2).flatten(2))
    torch.testing.assert_close(ours, theirs(x)[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("causal", [True, False])
def test_t5_bias_of_x_transformers(causal: bool) -> None:
    """B7: which scales it by a factor of its own, sqrt(hd) where scores are divided by that."""
    from x_transformers.x_transformers import RelativePositionBias

    theirs = RelativePositionBias(scale=2.0, causal=causal, heads=H)
    ours = T5RelativeBias(H, bidirectional=not causal)
    ours.load_state_dict(theirs.state_dict())
    for Q, K in ((9, 9), (2, 200)):
        torch.testing.assert_close(2.0 * ours.bias(Q, K), theirs(Q, K))


@pytest.mark.parametrize("num_heads", range(1, 21))
def test_alibi_slopes_of_three_models(num_heads: int) -> None:
    """B7: BLOOM, MPT and x-transformers, for powers of two and all between."""
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor
    from transformers.models.mpt.modeling_mpt import build_mpt_alibi_tensor
    from x_transformers.x_transformers import AlibiPositionalBias

    ours = alibi_slopes(num_heads).float()
    bloom = build_alibi_tensor(torch.ones(1, 2), num_heads, torch.float32)[:, 0, 1]
    mpt = -build_mpt_alibi_tensor(num_heads, 2)[:, 0, 0]
    lucid = AlibiPositionalBias(num_heads).slopes.flatten()
    for theirs in (bloom, mpt, lucid):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=0)


def test_alibi_differs_from_bloom_and_mpt_by_a_constant_per_query() -> None:
    """B7: they write slope * key position; x-transformers writes the symmetric form."""
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor
    from transformers.models.mpt.modeling_mpt import build_mpt_alibi_tensor
    from x_transformers.x_transformers import AlibiPositionalBias

    ours = alibi_bias(H, 5, 9, causal=True).float()
    bloom = build_alibi_tensor(torch.ones(1, 9), H, torch.float32)
    mpt = build_mpt_alibi_tensor(H, 9)
    for theirs in (bloom, mpt):
        shift = ours - theirs
        torch.testing.assert_close(shift, shift[..., :1].expand_as(shift), rtol=0, atol=1e-5)
    lucid = AlibiPositionalBias(H)(5, 9)
    torch.testing.assert_close(alibi_bias(H, 5, 9).float(), lucid)


def test_alibi_in_the_attention_of_bloom() -> None:
    """B7: the whole layer under a causal mask, with our bias in place of its own."""
    from transformers.models.bloom.modeling_bloom import BloomAttention, build_alibi_tensor

    config = transformers.BloomConfig(
        hidden_size=D, n_head=H, hidden_dropout=0.0, attention_dropout=0.0
    )
    theirs = BloomAttention(config, layer_idx=0).eval()
    x, S = normal(2, 7, D), 7
    future = torch.ones(S, S, dtype=torch.bool).triu(1)
    hidden = torch.zeros(S, S).masked_fill(future, torch.finfo(torch.float32).min)
    alibi = build_alibi_tensor(torch.ones(2, S), H, torch.float32)
    expected = theirs(x, torch.zeros_like(x), alibi, hidden)[0]
    q, k, v = theirs.query_key_value(x).view(2, S, H, 3, D // H).permute(3, 0, 2, 1, 4)
    for causal in (True, False):
        scores = ALiBi(H, causal=causal)(q @ k.mT / math.sqrt(D // H))
        weights = scores.masked_fill(future, -math.inf).softmax(-1)
        ours = theirs.dense((weights @ v).transpose(1, 2).flatten(2))
        torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("Q", "K"), [(1, 1), (5, 5), (3, 9), (1, 7)])
def test_the_shift_of_xlnet(Q: int, K: int) -> None:
    """B7: XLNet has one column more in front, for a distance of K, and drops it."""
    from transformers.models.xlnet.modeling_xlnet import XLNetRelativeAttention

    x = normal(2, H, Q, Q + K - 1)
    wider = torch.cat((normal(2, H, Q, 1), x), dim=-1)
    assert torch.equal(rel_shift(x, K), XLNetRelativeAttention.rel_shift_bnij(wider, klen=K))


def xlnet(module: TransformerXLAttention) -> tuple[nn.Module, nn.Module]:
    """XLNet's attention with our weights, and the model that makes its sinusoids."""
    config = transformers.XLNetConfig(
        vocab_size=10, d_model=D, n_head=H, n_layer=1, d_inner=8, dropout=0.0
    )
    model = transformers.XLNetModel(config).eval()
    theirs = model.layer[0].rel_attn
    with torch.no_grad():
        for name, layer in (
            ("q", module.q_proj),
            ("k", module.k_proj),
            ("v", module.v_proj),
            ("r", module.r_proj),
        ):
            getattr(theirs, name).copy_(layer.weight.T.reshape(D, H, -1))
        theirs.o.copy_(module.out_proj.weight.reshape(D, H, -1))
        theirs.r_w_bias.copy_(module.u[:, 0])
        theirs.r_r_bias.copy_(module.v[:, 0])
    return theirs, model


@pytest.mark.parametrize("M", [0, 4])
@pytest.mark.parametrize("causal", [True, False])
def test_the_attention_of_xlnet(M: int, causal: bool) -> None:
    """B7: the whole layer, with and without memory; XLNet adds x and a norm after it."""
    module = TransformerXLAttention(D, H, causal=causal)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.3)
    theirs, model = xlnet(module)
    B, Q, K = 2, 5, 5 + M
    x, memory = normal(B, Q, D), normal(B, M, D) if M else None
    r = model.relative_positional_encoding(Q, K, bsz=B)
    torch.testing.assert_close(r[1:, 0], relative_sinusoids(Q, K, D).float())
    future = (relative_distance(Q, K) > 0).float()[:, :, None, None] if causal else None
    with torch.no_grad():
        expected, _ = theirs(
            x.transpose(0, 1),
            None,
            future,
            None,
            r,
            None,
            mems=None if memory is None else memory.transpose(0, 1),
        )
        ours = theirs.layer_norm(module(x, memory) + x)
    torch.testing.assert_close(ours, expected.transpose(0, 1), rtol=1e-4, atol=1e-5)
