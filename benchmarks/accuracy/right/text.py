"""Models of text of transformers, each in the ways in which it can attend."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"  # before transformers is imported

import torch
from torch import nn

from benchmarks.accuracy.right import Given

LIBRARY = "transformers"
B, T, S, H, HKV, HD, D, F, V, LAYERS, LONGEST = 15, 7, 11, 6, 2, 14, 84, 201, 97, 2, 64

BERT = {"hidden_size": D, "num_attention_heads": H, "intermediate_size": F}
LLAMA = {**BERT, "num_key_value_heads": HKV}
SIDES = ("encoder", "decoder")
BART = {
    "d_model": D,
    **{f"{side}_layers": LAYERS for side in SIDES},
    **{f"{side}_attention_heads": H for side in SIDES},
    **{f"{side}_ffn_dim": F for side in SIDES},
}
T5 = {"d_model": D, "d_kv": HD, "d_ff": F, "num_heads": H, "num_layers": LAYERS}
ENDS = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}


def ids(length: int = S) -> torch.Tensor:
    return torch.randint(3, V, (B, length), generator=torch.Generator().manual_seed(0))


def keep() -> torch.Tensor:
    """(B, S), 1 for a token and 0 for padding on the right."""
    return (torch.arange(S) < 4 + torch.arange(B)[:, None] * 5 % 8).long()


def made(name: str, kind: str, attends: str, sizes: dict[str, Any]) -> nn.Module:
    import transformers

    transformers.logging.set_verbosity_error()
    common = {"vocab_size": V, "num_hidden_layers": LAYERS, "max_position_embeddings": LONGEST}
    known = {k: v for k, v in {**common, **ENDS, **sizes}.items() if v is not None}
    config = getattr(transformers, f"{name}Config")(**known, attn_implementation=attends)
    model: nn.Module = getattr(transformers, name.removesuffix("Text") + kind)(config)
    return model.eval()


def model(
    name: str, sizes: dict[str, Any], attends: str = "eager", kind: str = "Model", **more: Any
) -> Callable[[], Given]:
    """One call with token ids; `more` are further arguments."""

    def build() -> Given:
        call = {"input_ids": ids(), **more}
        dims = "input_ids: B S" + (", attention_mask: B S" if "attention_mask" in more else "")
        return Given(made(name, kind, attends, sizes), call, dims)

    return build


def cached(
    name: str, sizes: dict[str, Any], attends: str = "sdpa", step: int = 4
) -> Callable[[], Given]:
    """A call with some more tokens after a first call whose keys and values were kept."""

    def build() -> Given:
        module = made(name, "Model", attends, sizes)
        with torch.no_grad():
            out = module(input_ids=ids(), use_cache=True)
        cache = "cache" if "cache" in out else "past_key_values"  # by the version of transformers
        call = {"input_ids": ids(step), cache: out[cache], "use_cache": True}
        return Given(module, call, "input_ids: B L")

    return build


def two_sided(name: str, sizes: dict[str, Any], attends: str = "eager") -> Callable[[], Given]:
    def build() -> Given:
        call = {"input_ids": ids(), "attention_mask": keep(), "decoder_input_ids": ids(T)}
        dims = "input_ids: B S, attention_mask: B S, decoder_input_ids: B T"
        return Given(made(name, "Model", attends, sizes), call, dims)

    return build


GPT2 = {"n_positions": LONGEST, "n_embd": D, "n_layer": LAYERS, "n_head": H}
BLOOM = {"hidden_size": D, "n_layer": LAYERS, "n_head": H}
GEMMA = {**LLAMA, "head_dim": HD}
SLIDING = {**LLAMA, "sliding_window": 4}
NEOX = {**BERT, "rotary_pct": 1.0}
OPT = {"hidden_size": D, "num_attention_heads": H, "ffn_dim": F, "word_embed_proj_dim": D}
MPT = {"d_model": D, "n_heads": H, "n_layers": LAYERS, "max_seq_len": LONGEST}
DISTIL = {"dim": D, "n_heads": H, "hidden_dim": F, "n_layers": LAYERS}
EXPERTS = {
    "num_local_experts": 4,
    "intermediate_size": 200,  # their kernel takes rows of 16 bytes
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
}
XLNET: dict[str, Any] = {"d_model": D, "n_head": H, "d_inner": F, "n_layer": LAYERS, "d_head": HD}
XLNET["max_position_embeddings"] = None  # it knows no longest sequence
DEBERTA = {**BERT, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]}
FALCON = {"hidden_size": D, "num_attention_heads": H, "ffn_hidden_size": F}
MODERN = {**BERT, "local_attention": 4, "cls_token_id": 1, "sep_token_id": 2}
PADDED = {"attention_mask": keep()}

MODELS: dict[str, Callable[[], Given]] = {
    "GPT-2": model("GPT2", GPT2),
    "GPT-2, sdpa": model("GPT2", GPT2, "sdpa"),
    "GPT-2, padding": model("GPT2", GPT2, **PADDED),
    "GPT-2, with its head": model("GPT2", GPT2, "sdpa", "LMHeadModel"),
    "GPT-2, cache": cached("GPT2", GPT2, "eager"),
    "GPT-2, cache, sdpa, one token": cached("GPT2", GPT2, step=1),
    "BERT": model("Bert", BERT),
    "BERT, sdpa, padding": model("Bert", BERT, "sdpa", **PADDED),
    "BERT, padding": model("Bert", BERT, **PADDED),
    "Llama": model("Llama", LLAMA),
    "Llama, sdpa": model("Llama", LLAMA, "sdpa"),
    "Llama, padding": model("Llama", LLAMA, **PADDED),
    "Llama, sdpa, padding": model("Llama", LLAMA, "sdpa", **PADDED),
    "Llama, cache": cached("Llama", LLAMA, "eager"),
    "Llama, cache, sdpa, one token": cached("Llama", LLAMA, step=1),
    "T5": two_sided("T5", T5),
    "T5, encoder": model("T5", T5, kind="EncoderModel"),
    "BLOOM": model("Bloom", BLOOM),
    "BLOOM, padding": model("Bloom", BLOOM, **PADDED),
    "BLOOM, cache": cached("Bloom", BLOOM, "eager"),
    "Gemma": model("Gemma", GEMMA),
    "Gemma, sdpa": model("Gemma", GEMMA, "sdpa"),
    "Gemma 2": model("Gemma2", {**GEMMA, "sliding_window": 4}),
    "Gemma 3": model("Gemma3Text", {**GEMMA, "sliding_window": 4}, "sdpa", "TextModel"),
    "Qwen 2": model("Qwen2", LLAMA, "sdpa"),
    "Qwen 3": model("Qwen3", GEMMA),
    "Mistral, sliding window": model("Mistral", SLIDING),
    "Mistral, sliding window, sdpa": model("Mistral", SLIDING, "sdpa"),
    "Mistral, sliding window, cache": cached("Mistral", SLIDING, step=1),
    "GPT-NeoX": model("GPTNeoX", NEOX),
    "GPT-J": model("GPTJ", {**GPT2, "rotary_dim": 4}),
    "OPT": model("OPT", OPT, "sdpa", **PADDED),
    "Phi": model("Phi", {**LLAMA, "hidden_size": 96}),
    "Falcon": model("Falcon", FALCON),
    "Falcon, ALiBi, padding": model("Falcon", {**FALCON, "alibi": True}, **PADDED),
    "MPT": model("Mpt", MPT),
    "gpt-oss": model("GptOss", {**GEMMA, **EXPERTS, "sliding_window": 4}),
    "Mixtral": model("Mixtral", {**LLAMA, **EXPERTS}),
    "StableLM": model("StableLm", {**LLAMA, "hidden_size": 96}),
    "OLMo 2": model("Olmo2", LLAMA),
    "Cohere": model("Cohere", LLAMA),
    "RoBERTa": model("Roberta", BERT, "sdpa", **PADDED),
    "DistilBERT": model("DistilBert", DISTIL, **PADDED),
    "ALBERT": model("Albert", {**BERT, "embedding_size": 30}),
    "ELECTRA": model("Electra", {**BERT, "embedding_size": 30}, **PADDED),
    "DeBERTa v2": model("DebertaV2", DEBERTA),
    "ModernBERT": model("ModernBert", MODERN, "sdpa", **PADDED),
    "XLNet": model("XLNet", XLNET),
    "Longformer": model("Longformer", {**BERT, "attention_window": 4}),
    "BigBird, full": model("BigBird", {**BERT, "attention_type": "original_full"}),
    "BART": two_sided("Bart", BART),
    "BART, sdpa": two_sided("Bart", BART, "sdpa"),
    "Marian": two_sided("Marian", {**BART, "decoder_start_token_id": 0}),
    "MPNet": model("MPNet", BERT),
    "CLIP, text": model("CLIPText", BERT, kind="TextModel"),
    "FNet": model("FNet", {"hidden_size": D, "intermediate_size": F}),
}
