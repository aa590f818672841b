"""Passes of other libraries that benchmarks/references.py sets beside the references.

Each function builds one: a call without arguments. What takes sizes of its own gives a function
that builds.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from attnlab.references import masks

B, S, D, H, HKV, HD, V = 4, 512, 512, 8, 2, 64, 1000
Pass = Callable[[], object]

x, context = torch.randn(B, S, D), torch.randn(B, S, D)
q, k, scores = torch.randn(B, H, S, HD), torch.randn(B, H, S, HD), torch.randn(B, H, S, S)
ids = torch.randint(V, (B, S))
causal = masks.causal_mask(S)  #              (1, 1, S, S), True = may not be attended
may = ~causal
still = torch.ones(1, S, HD), torch.zeros(1, S, HD)  # a rotation by nothing


def multihead(**more: Any) -> Pass:
    module = nn.MultiheadAttention(D, H, batch_first=True, **more)
    mask = causal[0, 0]
    return lambda: module(x, x, x, attn_mask=mask, need_weights=False)


def multihead_norm_residual() -> Pass:
    """With a mask for each sequence, as ours takes it."""
    module, norm = nn.MultiheadAttention(D, H, batch_first=True), nn.LayerNorm(D)
    mask = causal.expand(B, H, S, S).flatten(0, 1)
    return lambda: norm(module(x, x, x, attn_mask=mask, need_weights=False)[0]) + x


def multihead_cross() -> Pass:
    module = nn.MultiheadAttention(D, H, batch_first=True)
    return lambda: module(x, context, context, need_weights=False)


def torch_encoder(norm_first: bool) -> Callable[[], Pass]:
    def build() -> Pass:
        module = nn.TransformerEncoderLayer(
            D, H, 4 * D, activation="gelu", batch_first=True, norm_first=norm_first, dropout=0.0
        ).train()  # evaluation takes a fused path that refuses most masks
        return lambda: module(x, src_mask=causal[0, 0])

    return build


def torch_decoder() -> Pass:
    module = nn.TransformerDecoderLayer(D, H, 4 * D, activation="gelu", batch_first=True, dropout=0)
    return lambda: module(x, context, tgt_mask=causal[0, 0])


def hugging(model: str, name: str, **more: Any) -> Callable[[], Pass]:
    """An attention layer of transformers, in the fastest mode that it has."""

    def build() -> Pass:
        import transformers

        module = importlib.import_module(f"transformers.models.{model}.modeling_{model}")
        whole = getattr(transformers, f"{name}Config")
        eager = model in ("gemma2", "gpt_oss")  # these have no fused form on CPU
        config = getattr(transformers, f"{name}TextConfig", whole)(
            attn_implementation="eager" if eager else "sdpa",
            hidden_size=D,
            num_attention_heads=H,
            head_dim=HD,
            **{"num_key_value_heads": HKV, **more},
        )
        layer = getattr(module, f"{name}Attention")(config, layer_idx=0).eval()
        mask = masks.to_additive(causal, torch.float32) if eager else may
        turn = tuple(t[..., : HD // 2] for t in still) if model == "gpt_oss" else still
        return lambda: layer(x, position_embeddings=turn, attention_mask=mask)

    return build


def hugging_model(name: str, **more: Any) -> Callable[[], Pass]:
    def build() -> Pass:
        import transformers

        config = getattr(transformers, f"{name}Config")(
            vocab_size=V, bos_token_id=0, eos_token_id=0, **more
        )
        model = getattr(transformers, f"{name}LMHeadModel")(config).eval()
        return lambda: model(ids, use_cache=False)

    return build


def hugging_part(path: str, name: str, *arguments: Any) -> Callable[[], Pass]:
    def build() -> Pass:
        module = getattr(importlib.import_module(f"transformers.models.{path}"), name)(*arguments)
        return lambda: module(x)

    return build


def llama_layer() -> Pass:
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaDecoderLayer

    config = LlamaConfig(
        hidden_size=D, num_attention_heads=H, intermediate_size=4 * D, attn_implementation="sdpa"
    )
    layer = LlamaDecoderLayer(config, layer_idx=0).eval()
    return lambda: layer(x, position_embeddings=still, attention_mask=may)


def llama_mlp() -> Pass:
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaMLP

    module = LlamaMLP(LlamaConfig(hidden_size=D, intermediate_size=4 * D))
    return lambda: module(x)


def x_transformers(**more: Any) -> Callable[[], Pass]:
    def build() -> Pass:
        from x_transformers import Attention

        module = Attention(dim=D, heads=H, dim_head=HD, **more).eval()
        return lambda: module(x, attn_mask=may[0, 0])

    return build


def plain_layers() -> Pass:
    module = nn.Sequential(nn.Linear(D, 4 * D), nn.GELU(), nn.Linear(4 * D, D))
    return lambda: module(x)


def llama_rotation() -> Pass:
    from transformers import LlamaConfig
    from transformers.models.llama import modeling_llama as llama

    module = llama.LlamaRotaryEmbedding(LlamaConfig(hidden_size=D, num_attention_heads=H))
    positions = torch.arange(S)[None]
    return lambda: llama.apply_rotary_pos_emb(q, k, *module(x, positions))


def rotary_torch() -> Pass:
    from rotary_embedding_torch import RotaryEmbedding as Other

    module = Other(HD)
    return lambda: (module.rotate_queries_or_keys(q), module.rotate_queries_or_keys(k))


def positional_encodings() -> Pass:
    from positional_encodings.torch_encodings import PositionalEncoding1D, Summer

    module = Summer(PositionalEncoding1D(D))
    return lambda: module(x)


def t5_bias() -> Pass:
    from transformers import T5Config
    from transformers.models.t5.modeling_t5 import T5Attention

    config = T5Config(d_model=D, num_heads=H)
    module = T5Attention(config, has_relative_attention_bias=True, layer_idx=0)
    return lambda: scores + module.compute_bias(S, S)


def x_alibi() -> Pass:
    from x_transformers.x_transformers import AlibiPositionalBias

    module = AlibiPositionalBias(H, H)
    return lambda: scores + module(S, S)


def learned_table() -> Pass:
    table, positions = nn.Embedding(S, D), torch.arange(S)
    return lambda: x + table(positions)
