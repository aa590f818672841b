"""Blocks against PyTorch's encoder and decoder layers with the same weights (A6)."""

from dataclasses import replace
from functools import partial

import pytest
import torch
from attention_scenes import exact, few, normal, random_mask, randomised, sizes, spin
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from attnlab.references import masks
from attnlab.references.block import BERT, GPT2, LLAMA, BlockStyle, CrossBlock, TransformerBlock
from attnlab.references.feed_forward import FeedForward, SwiGLU
from attnlab.references.norms import LayerNorm, RMSNorm

STYLES = {
    "gpt2": GPT2,
    "bert": BERT,
    "llama": replace(LLAMA, num_kv_heads=2, hidden_dim=20, rotate=spin),
}
styles = st.sampled_from(sorted(STYLES))


def copy_attention(ours: nn.Module, theirs: nn.MultiheadAttention) -> None:
    parts = (ours.q_proj, ours.k_proj, ours.v_proj)
    theirs.in_proj_weight = nn.Parameter(torch.cat([part.weight for part in parts]))
    theirs.in_proj_bias = nn.Parameter(torch.cat([part.bias for part in parts]))
    theirs.out_proj.load_state_dict(ours.out_proj.state_dict())


@given(sizes(5, 6), st.booleans())
@few
def test_a_block_is_pytorchs_encoder_layer(n: list[int], norm_first: bool) -> None:
    """A6: pre-norm and post-norm, with the same weights and a mask."""
    B, S, H, hd, F = n
    D = H * hd
    block = randomised(TransformerBlock(D, H, BlockStyle(norm_first=norm_first, hidden_dim=F)))
    twin = nn.TransformerEncoderLayer(
        D, H, F, dropout=0.0, activation="gelu", batch_first=True, norm_first=norm_first
    ).double()
    copy_attention(block.attention, twin.self_attn)
    twin.linear1.load_state_dict(block.feed_forward.up.state_dict())
    twin.linear2.load_state_dict(block.feed_forward.down.state_dict())
    twin.norm1.load_state_dict(block.attention_norm.state_dict())
    twin.norm2.load_state_dict(block.feed_forward_norm.state_dict())
    x, mask = normal(B, S, D), random_mask(B, 1, S, S)
    expected = twin(x, src_mask=mask.expand(B, H, S, S).flatten(0, 1))
    torch.testing.assert_close(block(x, mask), expected, **exact)


@given(sizes(6, 7), st.booleans())
@few
def test_a_cross_block_is_pytorchs_decoder_layer(n: list[int], norm_first: bool) -> None:
    """A5, A6: self-attention, cross attention and layer, each with its norm and residual."""
    B, S, Sk, H, hd, F = n
    D = H * hd
    block = randomised(CrossBlock(D, H, BlockStyle(norm_first=norm_first, hidden_dim=F)))
    twin = nn.TransformerDecoderLayer(
        D, H, F, dropout=0.0, activation="gelu", batch_first=True, norm_first=norm_first
    ).double()
    copy_attention(block.attention, twin.self_attn)
    copy_attention(block.cross, twin.multihead_attn)
    twin.linear1.load_state_dict(block.feed_forward.up.state_dict())
    twin.linear2.load_state_dict(block.feed_forward.down.state_dict())
    twin.norm1.load_state_dict(block.attention_norm.state_dict())
    twin.norm2.load_state_dict(block.cross_norm.state_dict())
    twin.norm3.load_state_dict(block.feed_forward_norm.state_dict())
    x, context = normal(B, S, D), normal(B, Sk, D)
    mask, context_mask = masks.causal_mask(S), random_mask(B, 1, 1, Sk)
    expected = twin(
        x,
        context,
        tgt_mask=mask[0, 0],
        memory_key_padding_mask=context_mask[:, 0, 0],
    )
    torch.testing.assert_close(block(x, context, mask, context_mask), expected, **exact)


def test_styles_are_what_their_names_say() -> None:
    """A6: the order of norms, the norm, the layer, biases and widths of three families."""
    gpt2, bert, llama = (
        TransformerBlock(12, 6, STYLES[name]) for name in ("gpt2", "bert", "llama")
    )
    assert (gpt2.norm_first, bert.norm_first, llama.norm_first) == (True, False, True)
    assert isinstance(gpt2.attention_norm, LayerNorm)
    assert bert.attention_norm.eps == 1e-12
    assert isinstance(llama.attention_norm, RMSNorm)
    assert isinstance(llama.feed_forward, SwiGLU)
    assert (gpt2.feed_forward.approximate, bert.feed_forward.approximate) == ("tanh", "none")
    assert gpt2.feed_forward.up.out_features == 48
    assert llama.attention.num_kv_heads == 2
    assert not [name for name, _ in llama.named_parameters() if name.endswith("bias")]


def test_a_pre_norm_block_whose_branches_are_silent_is_the_identity() -> None:
    """A6: the residual stream is untouched; a post-norm block normalises it all the same."""
    x = normal(2, 5, 12)
    for style in (GPT2, BERT):
        block = randomised(TransformerBlock(12, 3, style))
        for layer in (block.attention.out_proj, block.feed_forward.down):
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)
        assert torch.equal(block(x), x) == (style is GPT2)


@given(styles, st.lists(st.integers(1, 4), min_size=1, max_size=4))
@few
def test_decoding_in_any_parts_is_one_pass(name: str, parts: list[int]) -> None:
    """A5, A6: through a cache, of blocks and of blocks that look at an encoder too."""
    S, x, context = sum(parts), normal(2, sum(parts), 24), normal(2, 3, 24)
    block = randomised(TransformerBlock(24, 6, STYLES[name]))
    cross = randomised(CrossBlock(24, 6, STYLES[name]))
    caches, start, outs = [b.attention.new_cache(2, S) for b in (block, cross)], 0, []
    with torch.no_grad():
        memory = cross.remember(context)
        for step in parts:
            part, mask = x[:, start : start + step], masks.causal_mask(step, start + step)
            own = block(part, mask, cache=caches[0])
            outs.append(torch.cat((own, cross.step(part, memory, mask, cache=caches[1])), dim=-1))
            start += step
    causal = masks.causal_mask(S)
    whole = torch.cat((block(x, causal), cross(x, context, causal)), dim=-1)
    torch.testing.assert_close(torch.cat(outs, dim=1), whole, **exact)


@given(styles)
@few
def test_packed_sequences_are_as_if_alone(name: str) -> None:
    """A6: block-diagonal masks and positions that begin anew."""
    block, x = randomised(TransformerBlock(24, 6, STYLES[name])), normal(1, 9, 24)
    segments = masks.segment_ids([4, 2, 3])
    packed = block(x, masks.packed_mask(segments), positions=masks.segment_positions(segments))
    alone = [block(part) for part in x.split([4, 2, 3], dim=1)]
    torch.testing.assert_close(packed, torch.cat(alone, dim=1), **exact)


@pytest.mark.parametrize("name", sorted(STYLES))
def test_empty_rows_have_finite_gradients(name: str) -> None:
    """A4, A6: also through both norms, residuals and layers."""
    block, x = randomised(TransformerBlock(24, 6, STYLES[name])), normal(2, 4, 24)
    mask = random_mask(2, 1, 4, 4)
    mask[1] = True
    with torch.autograd.set_detect_anomaly(True):
        block(x, mask).square().sum().backward()
    assert all(p.grad.isfinite().all() for p in block.parameters())


def test_dropout_falls_on_weights_layers_and_branches() -> None:
    """A6: with everything dropped a pre-norm block is the identity, in training only."""
    block = randomised(TransformerBlock(24, 6, replace(GPT2, dropout=1.0)))
    x = normal(2, 4, 24)
    assert torch.equal(block.train()(x), x)
    assert not torch.equal(block.eval()(x), x)
    assert block.attention.dropout == block.feed_forward.dropout.p == block.dropout.p == 1.0


@pytest.mark.parametrize(("dtype", "close"), [(torch.float16, 1e-2), (torch.bfloat16, 6e-2)])
@pytest.mark.parametrize("name", sorted(STYLES))
def test_narrower_types_stay_close(name: str, dtype: torch.dtype, close: float) -> None:
    """A6: with the same rounded weights and inputs, near float64."""
    torch.manual_seed(0)
    block, x = TransformerBlock(24, 6, STYLES[name]).to(dtype), normal(2, 4, 24).to(dtype)
    with torch.no_grad():
        found, expected = block(x), block.double()(x.double())
    assert found.dtype == dtype
    torch.testing.assert_close(found.double(), expected, rtol=close, atol=close)


def test_any_norm_and_layer_may_be_given() -> None:
    """A6: a style takes what builds them; here PyTorch's norm and a narrow tanh layer."""
    style = BlockStyle(norm=nn.LayerNorm, feed_forward=partial(FeedForward, tanh=True))
    ours = randomised(TransformerBlock(12, 3, replace(style, norm=LayerNorm)))
    theirs = TransformerBlock(12, 3, style).double()
    theirs.load_state_dict(ours.state_dict())
    x = normal(2, 5, 12)
    torch.testing.assert_close(ours(x), theirs(x), **exact)


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: TransformerBlock(7, 2), ValueError, "embed_dim=7, num_heads=2: expected"),
        (
            lambda: TransformerBlock(8, 4, replace(GPT2, num_kv_heads=3)),
            ValueError,
            "num_kv_heads=3",
        ),
        (lambda: TransformerBlock(8, 4, replace(GPT2, dropout=-0.1)), ValueError, "dropout=-0.1"),
        (
            lambda: TransformerBlock(8, 4, replace(GPT2, hidden_dim=0)),
            ValueError,
            "hidden_dim=0: ex",
        ),
        (lambda: CrossBlock(7, 2), ValueError, "embed_dim=7, num_heads=2: expected"),
        (
            lambda: TransformerBlock(8, 4)(torch.zeros(2, 3, 8), torch.zeros(3, 3).bool()),
            ValueError,
            r"mask has shape \(3, 3\): expected \(B, H, Sq, Sk\) = \(2, 4, 3, 3\)",
        ),
        (
            lambda: CrossBlock(8, 4)(torch.zeros(2, 3, 8), torch.zeros(2, 5, 9)),
            ValueError,
            r"context has shape \(2, 5, 9\): expected \(B, S, D\) with D = 8",
        ),
        (
            lambda: TransformerBlock(8, 4)(torch.zeros(2, 3, 8).half()),
            (TypeError),
            "x has dtype torch.float16: expected torch.float32",
        ),
    ],
)
def test_arguments_that_do_not_fit_are_refused(call, error: type, said: str) -> None:
    """A6: with the messages of the parts."""
    with pytest.raises(error, match=said):
        call()
