"""Attention layers of transformers and x-transformers with the same weights (A3, A5)."""

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import importlib

import pytest
import torch
from attention_peers import additive, angles, close, copy, randomised, rotation
from torch import nn

from attnlab.references import heads, masks
from attnlab.references.cross import CrossAttention
from attnlab.references.grouped import GroupedQueryAttention, MultiQueryAttention
from attnlab.references.variants import QKNormAttention, SinkAttention, SoftCapAttention

transformers = pytest.importorskip("transformers")

B, S, D, H, HKV, HD = 3, 7, 24, 6, 2, 4
PROJECTIONS = {"q_proj": "q_proj", "k_proj": "k_proj", "v_proj": "v_proj", "o_proj": "out_proj"}
SIZES = {
    "hidden_size": D,
    "num_attention_heads": H,
    "num_key_value_heads": HKV,
    "head_dim": HD,
    "num_hidden_layers": 1,
    "attn_implementation": "eager",
}


def layer(model: str, name: str, **more: object) -> tuple[nn.Module, object]:
    """An attention layer of transformers with random weights, and the model's rotation."""
    module = importlib.import_module(f"transformers.models.{model}.modeling_{model}")
    whole = getattr(transformers, f"{name}Config")
    config = getattr(transformers, f"{name}TextConfig", whole)  # the text half of many kinds
    attention = getattr(module, f"{name}Attention")(config(**SIZES, **more), layer_idx=0)
    return randomised(attention), getattr(module, "apply_rotary_pos_emb", None)


def compare(theirs: nn.Module, turn: object, build: type[GroupedQueryAttention], **more) -> None:
    """With causal, padded and sparse masks; with a rotation by arbitrary angles."""
    cos, sin = angles(B, S, HD)
    has_bias = theirs.q_proj.bias is not None
    ours = build(D, H, HKV, bias=has_bias, rotate=rotation(turn, cos, sin), **more)
    names = {**PROJECTIONS, "q_norm": "q_norm", "k_norm": "k_norm", "sinks": "sinks"}
    copy(theirs, ours, names)
    padding = masks.padding_mask(torch.tensor([7, 4, 2]), S)
    for mask in (masks.causal_mask(S), masks.combine(masks.causal_mask(S), padding), padding):
        x = torch.randn(B, S, D)
        expected = theirs(x, position_embeddings=(cos, sin), attention_mask=additive(mask))[0]
        torch.testing.assert_close(ours(x, mask), expected, **close)


def test_llama_grouped_queries() -> None:
    """A5: with and without biases."""
    compare(*layer("llama", "Llama"), GroupedQueryAttention)
    compare(*layer("llama", "Llama", attention_bias=True), GroupedQueryAttention)


def test_qwen3_norms_of_queries_and_keys() -> None:
    """A5: per head, before rotation."""
    compare(*layer("qwen3", "Qwen3"), QKNormAttention)


def test_gemma3_norms_whose_weights_are_one_less() -> None:
    """A5: the same function after adding 1 to the stored weights."""
    theirs, turn = layer("gemma3", "Gemma3", query_pre_attn_scalar=HD)
    cos, sin = angles(B, S, HD)
    ours = QKNormAttention(D, H, HKV, bias=False, rotate=rotation(turn, cos, sin))
    copy(theirs, ours, {**PROJECTIONS, "q_norm": "q_norm", "k_norm": "k_norm"})
    x, mask = torch.randn(B, S, D), masks.causal_mask(S)
    expected = theirs(x, position_embeddings=(cos, sin), attention_mask=additive(mask))[0]
    assert not torch.allclose(ours(x, mask), expected, **close)
    with torch.no_grad():
        ours.q_norm.weight += 1
        ours.k_norm.weight += 1
    torch.testing.assert_close(ours(x, mask), expected, **close)


def test_gemma2_soft_cap() -> None:
    """A5: before the mask; a low cap, so that it matters."""
    theirs, turn = layer("gemma2", "Gemma2", query_pre_attn_scalar=HD, attn_logit_softcapping=1.5)
    compare(theirs, turn, SoftCapAttention, cap=1.5)


def test_gpt_oss_sinks() -> None:
    """A5: learned per head, in the denominator alone. (Its rotation takes half-width angles.)"""
    theirs, turn = layer("gpt_oss", "GptOss")
    ours = SinkAttention(D, H, HKV)
    cos, sin = (t[..., : HD // 2] for t in angles(B, S, HD))
    ours.rotate = rotation(turn, cos, sin)
    copy(theirs, ours, {**PROJECTIONS, "sinks": "sinks"})
    for mask in (masks.causal_mask(S), masks.sliding_window_mask(S, window=3)):
        x = torch.randn(B, S, D)
        expected = theirs(x, position_embeddings=(cos, sin), attention_mask=additive(mask))[0]
        torch.testing.assert_close(ours(x, mask), expected, **close)


def test_gpt_neox_layout_of_the_fused_projection() -> None:
    """A3: rows ordered head by head (H, 3, hd), converted by `to_stacked_layout`."""
    from transformers.models.gpt_neox.modeling_gpt_neox import GPTNeoXAttention

    config = transformers.GPTNeoXConfig(
        hidden_size=D, num_attention_heads=H, attn_implementation="eager"
    )
    theirs = randomised(GPTNeoXAttention(config, layer_idx=0))
    x, mask = torch.randn(B, S, D), masks.causal_mask(S)
    still = torch.ones(B, S, 1), torch.zeros(B, S, 1)  # one column: broadcast over those that turn
    expected = theirs(x, additive(mask), position_embeddings=still)[0]
    fused = theirs.query_key_value
    weight, bias = (heads.to_stacked_layout(w, H) for w in (fused.weight, fused.bias))
    q, k, v = heads.qkv_by_chunk(nn.functional.linear(x, weight, bias), H)
    ours = GroupedQueryAttention(D, H)
    context = ours.weights(ours.scores(q, k), mask) @ v
    found = theirs.dense(heads.merge_heads(context))
    torch.testing.assert_close(found, expected, **close)


def test_bart_cross_attention() -> None:
    """A5: queries of the decoder, keys and values of the encoder, with its padding."""
    from transformers.models.bart.modeling_bart import BartAttention

    config = transformers.BartConfig(attn_implementation="eager")
    theirs = randomised(BartAttention(D, H, config=config, layer_idx=0))
    ours = copy(theirs, CrossAttention(D, H), {"": ""})
    x, context = torch.randn(B, S, D), torch.randn(B, 5, D)
    mask = masks.padding_mask(torch.tensor([5, 2, 4]), 5)
    expected = theirs(x, context, attention_mask=additive(mask))[0]
    torch.testing.assert_close(ours(x, context, mask), expected, **close)


XT = {"to_q": "q_proj", "to_k": "k_proj", "to_v": "v_proj", "to_out": "out_proj"}


def x_attention(**more: object) -> nn.Module:
    x_transformers = pytest.importorskip("x_transformers")
    return randomised(x_transformers.Attention(dim=D, heads=H, dim_head=HD, **more))


def regrouped(weight: torch.Tensor) -> torch.Tensor:
    """Rows by query head, from theirs (head h reads key head h % Hkv) to ours (h // (H / Hkv))."""
    return weight.unflatten(0, (H // HKV, HKV, HD)).transpose(0, 1).flatten(0, 2)


@pytest.mark.parametrize(
    ("ours", "more"),
    [
        (lambda: GroupedQueryAttention(D, H, bias=False), {}),
        (lambda: GroupedQueryAttention(D, H, HKV, bias=False), {"kv_heads": HKV}),
        (lambda: MultiQueryAttention(D, H, bias=False), {"one_kv_head": True}),
        (
            lambda: SoftCapAttention(D, H, HKV, bias=False, cap=1.5),
            {"kv_heads": HKV, "softclamp_logits": True, "logit_softclamp_value": 1.5},
        ),
    ],
)
def test_x_transformers(ours, more: dict[str, object]) -> None:
    """A5: heads, grouped heads, one head, soft-cap. Their masks: True = may attend.

    Their grouped heads are dealt out in turn, ours in blocks: query heads are reordered."""
    theirs, x = x_attention(**more), torch.randn(B, S, D)
    module = copy(theirs, ours(), XT)
    if "kv_heads" in more:
        module.q_proj.weight.data = regrouped(module.q_proj.weight)
        module.out_proj.weight.data = regrouped(module.out_proj.weight.T).T
    torch.testing.assert_close(module(x), theirs(x), **close)
    padding = masks.padding_mask(torch.tensor([7, 4, 2]), S)
    real = ~padding[:, 0, 0]  # outputs at padded queries they set to zeros
    torch.testing.assert_close(module(x, padding)[real], theirs(x, mask=real)[real], **close)
    causal = masks.causal_mask(S)
    expected = theirs(x, attn_mask=~causal[0, 0])
    torch.testing.assert_close(module(x, causal), expected, **close)


def test_x_transformers_sinks() -> None:
    """A5: `head_learned_sink`, in the denominator alone."""
    theirs = x_attention(head_learned_sink=True)
    ours = SinkAttention(D, H, bias=False)
    copy(theirs, ours, {**XT, "attend.head_attn_sink": "sinks"})
    x = torch.randn(B, S, D)
    torch.testing.assert_close(ours(x), theirs(x), **close)


def test_x_transformers_cross_attention() -> None:
    """A5: with a context of another width."""
    theirs = x_attention(dim_context=10)
    ours = copy(theirs, CrossAttention(D, H, 10, bias=False), XT)
    x, context = torch.randn(B, S, D), torch.randn(B, 5, 10)
    torch.testing.assert_close(ours(x, context), theirs(x, context=context), **close)
