"""Whole models of transformers with the same weights: GPT-2, Llama, Mistral, BERT, BART (A6)."""

import inspect
import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")

from dataclasses import replace
from functools import partial

import pytest
import torch
from attention_peers import additive, close, copy, randomised
from torch import nn

from attnlab.references import masks
from attnlab.references.block import BERT, GPT2, LLAMA, BlockStyle, CrossBlock, TransformerBlock
from attnlab.references.decoder import DecoderLM
from attnlab.references.norms import RMSNorm
from attnlab.references.rotary import RotaryEmbedding

transformers = pytest.importorskip("transformers")

V, D, H, HKV, L, MAX = 17, 24, 6, 2, 2, 12
LLAMA_NAMES = {
    "self_attn.q_proj": "attention.q_proj",
    "self_attn.k_proj": "attention.k_proj",
    "self_attn.v_proj": "attention.v_proj",
    "self_attn.o_proj": "attention.out_proj",
    "mlp.gate_proj": "feed_forward.gate",
    "mlp.up_proj": "feed_forward.up",
    "mlp.down_proj": "feed_forward.down",
    "input_layernorm": "attention_norm",
    "post_attention_layernorm": "feed_forward_norm",
}


def gpt2() -> tuple[nn.Module, DecoderLM]:
    """Their matrices stand the other way round and hold q, k and v in one."""
    config = transformers.GPT2Config(
        vocab_size=V, n_positions=MAX, n_embd=D, n_head=H, n_layer=L, bos_token_id=0, eos_token_id=0
    )
    theirs = randomised(transformers.GPT2LMHeadModel(config))
    ours = DecoderLM(V, D, H, L, MAX, GPT2).eval()
    body = theirs.transformer
    with torch.no_grad():
        ours.tokens.weight.copy_(body.wte.weight)
        ours.positions.weight.copy_(body.wpe.weight)
        ours.norm.load_state_dict(body.ln_f.state_dict())
        for block, other in zip(ours.blocks, body.h, strict=True):
            attention, fused = block.attention, other.attn.c_attn
            layers = (attention.q_proj, attention.k_proj, attention.v_proj)
            for n, layer in enumerate(layers):
                layer.weight.copy_(fused.weight.chunk(3, dim=1)[n].T)
                layer.bias.copy_(fused.bias.chunk(3)[n])
            for layer, source in (
                (attention.out_proj, other.attn.c_proj),
                (block.feed_forward.up, other.mlp.c_fc),
                (block.feed_forward.down, other.mlp.c_proj),
            ):
                layer.weight.copy_(source.weight.T)
                layer.bias.copy_(source.bias)
            block.attention_norm.load_state_dict(other.ln_1.state_dict())
            block.feed_forward_norm.load_state_dict(other.ln_2.state_dict())
    return theirs, ours


def llama(name: str = "Llama", **more: object) -> tuple[nn.Module, DecoderLM]:
    """Also of models with the same parts; rotated by our RoPE, in its half-split layout."""
    config = getattr(transformers, f"{name}Config")(
        vocab_size=V,
        hidden_size=D,
        intermediate_size=20,
        num_attention_heads=H,
        num_key_value_heads=HKV,
        num_hidden_layers=L,
        max_position_embeddings=MAX,
        tie_word_embeddings=True,
        rms_norm_eps=1e-5,
        bos_token_id=0,
        eos_token_id=0,
        **more,
    )
    theirs = randomised(getattr(transformers, f"{name}ForCausalLM")(config))
    style = replace(
        LLAMA,
        hidden_dim=20,
        num_kv_heads=HKV,
        norm=partial(RMSNorm, eps=1e-5),
        rotate=RotaryEmbedding(D // H, layout="half").rotate,
    )
    names = {"embed_tokens": "tokens", "norm": "norm"}
    for n in range(L):
        for key, value in LLAMA_NAMES.items():
            names[f"layers.{n}.{key}"] = f"blocks.{n}.{value}"
    return theirs, copy(theirs.model, DecoderLM(V, D, H, L, MAX, style), names)


@pytest.mark.parametrize("pair", [gpt2, llama])
def test_logits_and_generation(pair) -> None:
    """A6: the same logits, step by step through both caches too, and the same greedy text."""
    theirs, ours = pair()
    ids = torch.randint(1, V, (3, 7))
    with torch.no_grad():
        torch.testing.assert_close(ours(ids), theirs(ids).logits, **close)
        caches, theirs_cache = ours.new_caches(3), None
        named = inspect.signature(theirs.forward).parameters
        cache = "cache" if "cache" in named else "past_key_values"  # by its version
        for part in ids.split([4, 1, 2], dim=1):
            out = theirs(part, **{cache: theirs_cache}, use_cache=True)
            theirs_cache = getattr(out, cache)
            torch.testing.assert_close(ours(part, caches=caches), out.logits, **close)
    text = theirs.generate(
        ids, max_new_tokens=5, min_new_tokens=5, do_sample=False, pad_token_id=0, eos_token_id=None
    )
    assert torch.equal(ours.generate(ids, 5), text)


@pytest.mark.parametrize("pair", [gpt2, llama])
def test_left_padding(pair) -> None:
    """A4, A6: `attention_mask` (1 = real) and `position_ids` are our mask and positions."""
    theirs, ours = pair()
    ids, real = torch.randint(1, V, (3, 6)), torch.tensor([6, 2, 4])
    padding = masks.padding_mask(real, 6, side="left")
    positions = (torch.arange(6) - (6 - real)[:, None]).clamp(min=0)
    kept = ~padding[:, 0, 0]
    with torch.no_grad():
        expected = theirs(ids, attention_mask=kept.long(), position_ids=positions).logits
        found = ours(ids, padding, positions=positions)
    torch.testing.assert_close(found[kept], expected[kept], **close)


def test_mistral_window() -> None:
    """A4, A6: `sliding_window` counts the keys that are seen."""
    theirs, ours = llama("Mistral", sliding_window=3)
    ids = torch.randint(1, V, (2, 9))
    with torch.no_grad():
        found = ours(ids, masks.sliding_window_mask(9, window=3))
        torch.testing.assert_close(found, theirs(ids).logits, **close)
        assert not torch.allclose(ours(ids), found)


def test_bert_layer() -> None:
    """A6: a post-norm block without a causal mask."""
    from transformers.models.bert.modeling_bert import BertLayer

    config = transformers.BertConfig(
        hidden_size=D, num_attention_heads=H, intermediate_size=20, attn_implementation="eager"
    )
    theirs = randomised(BertLayer(config))
    names = {
        "attention.self.query": "attention.q_proj",
        "attention.self.key": "attention.k_proj",
        "attention.self.value": "attention.v_proj",
        "attention.output.dense": "attention.out_proj",
        "attention.output.LayerNorm": "attention_norm",
        "intermediate.dense": "feed_forward.up",
        "output.dense": "feed_forward.down",
        "output.LayerNorm": "feed_forward_norm",
    }
    ours = copy(theirs, TransformerBlock(D, H, replace(BERT, hidden_dim=20)), names)
    x, mask = torch.randn(3, 7, D), masks.padding_mask(torch.tensor([7, 4, 2]), 7)
    found, expected = ours(x, mask), theirs(x, attention_mask=additive(mask))
    torch.testing.assert_close(found, expected, **close)


def test_bart_decoder_layer() -> None:
    """A5, A6: a post-norm block that looks at an encoder."""
    from transformers.models.bart.modeling_bart import BartDecoderLayer

    config = transformers.BartConfig(
        d_model=D,
        decoder_attention_heads=H,
        decoder_ffn_dim=20,
        attn_implementation="eager",
    )
    theirs = randomised(BartDecoderLayer(config, layer_idx=0))
    names = {
        "self_attn.": "attention.",
        "encoder_attn.": "cross.",
        "fc1": "feed_forward.up",
        "fc2": "feed_forward.down",
        "self_attn_layer_norm": "attention_norm",
        "encoder_attn_layer_norm": "cross_norm",
        "final_layer_norm": "feed_forward_norm",
    }
    style = BlockStyle(norm_first=False, hidden_dim=20)
    ours = copy(theirs, CrossBlock(D, H, style), names)
    x, context = torch.randn(3, 7, D), torch.randn(3, 5, D)
    causal, padding = masks.causal_mask(7), masks.padding_mask(torch.tensor([5, 2, 4]), 5)
    expected = theirs(
        x,
        attention_mask=additive(causal),
        encoder_hidden_states=context,
        encoder_attention_mask=additive(padding),
        use_cache=False,
    )
    expected = expected[0] if isinstance(expected, tuple) else expected
    torch.testing.assert_close(ours(x, context, causal, padding), expected, **close)
