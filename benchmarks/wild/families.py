"""Every family of transformers with a small random configuration, and shapes of x-transformers."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import nn

B, S, H, HKV, HD, D, F, V, LAYERS, LONGEST, IMAGE, PATCH = 5, 11, 6, 2, 8, 48, 84, 97, 2, 64, 32, 8

# What a configuration calls each size; what is not named here stays as it is.
SIZES = (
    (
        D,
        (
            "hidden_size d_model n_embd dim embed_dim embedding_size decoder_hidden_size emb_dim "
            "encoder_hidden_size projection_dim hidden_dim text_hidden_size vision_hidden_size "
            "model_dim attention_hidden_size d_embed out_hidden_size embedding_dim width"
        ),
    ),
    (
        H,
        (
            "num_attention_heads encoder_attention_heads decoder_attention_heads n_head n_heads "
            "num_heads attention_heads decoder_num_attention_heads num_attention_head"
        ),
    ),
    (HKV, "num_key_value_heads num_kv_heads n_kv_heads multi_query_group_num"),
    (HD, "head_dim d_kv d_head qk_nope_head_dim v_head_dim attention_head_dim"),
    (
        F,
        (
            "intermediate_size encoder_ffn_dim decoder_ffn_dim d_ff ffn_dim n_inner d_inner "
            "ffn_hidden_size hidden_dim_ffn decoder_intermediate_size encoder_intermediate_size "
            "moe_intermediate_size shared_expert_intermediate_size mlp_dim"
        ),
    ),
    (V, "vocab_size src_vocab_size tgt_vocab_size entity_vocab_size"),
    (
        LAYERS,
        (
            "num_hidden_layers encoder_layers decoder_layers n_layer n_layers num_layers "
            "num_encoder_layers num_decoder_layers decoder_num_hidden_layers depth num_blocks "
            "l_layers x_layers r_layers num_hidden_groups"
        ),
    ),
    (
        LONGEST,
        (
            "max_position_embeddings n_positions n_ctx max_source_positions "
            "max_target_positions max_seq_len max_sequence_length max_seq_length block_size"
        ),
    ),
    (IMAGE, "image_size img_size"),
    (PATCH, "patch_size"),
    (4, "num_experts num_local_experts n_routed_experts num_routed_experts moe_num_experts"),
    (2, "num_experts_per_tok num_experts_per_token moe_topk moe_k top_k_experts"),
    (1, "n_group topk_group"),
)
SERIES = ("autoformer", "informer", "time_series_transformer")
TIME = {
    "prediction_length": 6,
    "context_length": 9,
    "lags_sequence": [1, 2, 3],
    "num_time_features": 4,
    "label_length": 4,
}
SMALL = {name: size for size, names in SIZES for name in names.split()}


class Given(NamedTuple):
    """A model, one call of it, and what the axes of its inputs are called."""

    module: nn.Module
    call: dict[str, Any]
    dims: str


Build = Callable[[], Given]


def shrink(config: Any) -> None:
    """Give a configuration, and those inside it, small sizes that differ from each other."""
    for name, value in list(vars(config).items()):
        if hasattr(value, "to_dict"):
            shrink(value)
        elif type(value) is int and value > SMALL.get(name, value):
            setattr(config, name, SMALL[name])
        elif name in ("layer_types", "layers_block_type", "mlp_layer_types") and value:
            kinds = list(dict.fromkeys(value))
            setattr(config, name, (kinds * LAYERS)[:LAYERS])
        elif isinstance(value, dict) and "mrope_section" in value:
            value["mrope_section"] = [1, 1, HD // 2 - 2]
    for name in ("pad_token_id", "bos_token_id", "eos_token_id"):
        value = getattr(config, name, None)
        if type(value) is int and value >= V:
            setattr(config, name, {"p": 0, "b": 1, "e": 2}[name[0]])


def transformers_model(family: str) -> Given:
    """The base model of a family of transformers, and one call of it."""
    import transformers
    from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

    transformers.logging.set_verbosity_error()
    more = TIME if family in SERIES else {}
    config = transformers.AutoConfig.for_model(family, **more)
    shrink(config)
    name = MODEL_MAPPING_NAMES[family]
    name = name if isinstance(name, str) else name[0]
    config._attn_implementation = "eager"  # noqa: SLF001 - how transformers itself sets it
    config.use_cache = False
    module: nn.Module = getattr(transformers, name)(config)
    return Given(module.eval(), *transformers_call(module, config))


def transformers_call(module: nn.Module, config: Any) -> tuple[dict[str, Any], str]:
    """Inputs by their usual names: ids, pictures, sound."""
    asked = inspect.signature(module.forward).parameters
    if "past_time_features" in asked:
        return time_series(config)
    main = getattr(module, "main_input_name", "input_ids")
    call: dict[str, Any] = {}
    if main == "pixel_values" or "pixel_values" in asked:
        inner = next((c for c in (config, getattr(config, "vision_config", None)) if c), config)
        side = getattr(inner, "image_size", None) or IMAGE
        side = side if isinstance(side, int) else side[0]
        call["pixel_values"] = torch.randn(B, getattr(inner, "num_channels", 3), side, side)
    if main == "input_values":
        call["input_values"] = torch.randn(B, 4000)
    if main == "input_features":
        bins = getattr(config, "num_mel_bins", getattr(config, "input_dim", 80))
        length = 2 * getattr(config, "max_source_positions", 50)
        call["input_features"] = torch.randn(B, bins, length)
    if "input_ids" in asked and main not in ("input_values", "input_features"):
        call["input_ids"] = torch.randint(3, V, (B, S))
    if "decoder_input_ids" in asked:
        call["decoder_input_ids"] = torch.randint(3, V, (B, S - 4))
    known = {"pixel_values": "B C h w", "input_ids": "B S", "decoder_input_ids": "B T"}
    return call, ", ".join(f"{n}: {known[n]}" for n in call if n in known)


def time_series(config: Any) -> tuple[dict[str, Any], str]:
    """Values and features of the time before and after the forecast."""
    before, after = config.context_length + max(config.lags_sequence), config.prediction_length
    call = {
        "past_values": torch.randn(B, before),
        "past_time_features": torch.randn(B, before, config.num_time_features),
        "past_observed_mask": torch.ones(B, before),
        "future_values": torch.randn(B, after),
        "future_time_features": torch.randn(B, after, config.num_time_features),
    }
    ends = {2: "", 3: " F"}
    named = {n: "B T" if n.startswith("future") else "B S" for n in call}
    return call, ", ".join(f"{n}: {axes}{ends[call[n].dim()]}" for n, axes in named.items())


def x_transformers_models() -> dict[str, Build]:
    """Encoders and decoders with one option each, where the package is installed."""
    try:
        from x_transformers import Decoder, Encoder, TransformerWrapper
    except ImportError:
        return {}
    flags: dict[str, dict[str, Any]] = {
        "plain": {},
        "rotary": {"rotary_pos_emb": True},
        "alibi": {"alibi_pos_bias": True, "alibi_num_heads": 3},
        "t5-bias": {"rel_pos_bias": True},
        "dynamic-bias": {"dynamic_pos_bias": True},
        "grouped": {"attn_kv_heads": HKV},
        "one-kv-head": {"attn_one_kv_head": True},
        "qk-norm": {"attn_qk_norm": True},
        "glu": {"ff_glu": True},
        "sandwich": {"sandwich_norm": True},
        "macaron": {"macaron": True},
        "talking-heads": {"attn_pre_talking_heads": True},
        "memory": {"attn_num_mem_kv": 3},
        "sparse-topk": {"attn_sparse_topk": 3},
        "shift-tokens": {"shift_tokens": 1},
        "gate-values": {"attn_gate_values": True},
        "xpos": {"rotary_xpos": True},
        "rms-norm": {"use_rmsnorm": True},
        "hyper": {"num_residual_streams": 2},
        "value-residual": {"add_value_residual": True},
    }

    def build(side: Any, more: dict[str, Any]) -> Given:
        layers = side(dim=D, depth=LAYERS, heads=H, attn_dim_head=HD, **more)
        model = TransformerWrapper(num_tokens=V, max_seq_len=LONGEST, attn_layers=layers)
        return Given(model.eval(), {"x": torch.randint(3, V, (B, S))}, "x: B S")

    return {
        f"x-transformers {name} {side.__name__.lower()}": partial(build, side, more)
        for name, more in flags.items()
        for side in (Encoder, Decoder)
        if not (side is Encoder and "xpos" in name)
    }


def families() -> dict[str, Build]:
    """Every family by its name, with what builds a model and a call of it."""
    from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

    names = sorted(MODEL_MAPPING_NAMES)
    return {n: partial(transformers_model, n) for n in names} | x_transformers_models()
