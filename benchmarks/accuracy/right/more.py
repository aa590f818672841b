"""More models of transformers, which were traced for the first time when the rules were done."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.accuracy.right import Given
from benchmarks.accuracy.right.pictures import SQUARE, VIT, WIDTH, picture
from benchmarks.accuracy.right.text import (
    BART,
    BERT,
    DEBERTA,
    FALCON,
    GEMMA,
    GPT2,
    HD,
    LAYERS,
    LLAMA,
    MPT,
    NEOX,
    PADDED,
    T5,
    D,
    F,
    H,
    cached,
    model,
    two_sided,
)

LIBRARY = "transformers"
NYSTROM = {**BERT, "segment_means_seq_len": 11, "num_landmarks": 11}
LED = {
    **BART,
    "attention_window": 4,
    "max_encoder_position_embeddings": 64,
    "max_decoder_position_embeddings": 64,
}
PROPHET = {
    "hidden_size": D,
    "num_hidden_layers": None,
    **{f"num_{side}_layers": LAYERS for side in ("encoder", "decoder")},
    **{f"num_{side}_attention_heads": H for side in ("encoder", "decoder")},
    **{f"{side}_ffn_dim": F for side in ("encoder", "decoder")},
}
XLM = {"emb_dim": D, "n_heads": H, "n_layers": LAYERS, "num_hidden_layers": None}
XLM |= {"bos_index": 0, "eos_index": 1, "pad_index": 2, "unk_index": 3, "mask_index": 4}
LATENT = {
    "q_lora_rank": 20,
    "kv_lora_rank": 24,
    "qk_rope_head_dim": 8,
    "v_head_dim": 10,
    "qk_nope_head_dim": 12,
    "first_k_dense_replace": 9,
    "num_key_value_heads": H,
}
PYRAMID = {
    "hidden_sizes": [24, 36, 48, 60],
    "num_attention_heads": [2, 3, 4, 5],
    "depths": [1, 1, 1, 1],
}
MOBILE = {
    "hidden_sizes": [24, 36, 48],
    "image_size": 64,
    "neck_hidden_sizes": [16, 32, 48, 64, 80, 96, 128],
}
TALL, SMALL, WIDE = (WIDTH, WIDTH), (64, 64), (64, 96)

MODELS: dict[str, Callable[[], Given]] = {
    "CTRL": model("CTRL", {**GPT2, "dff": F}),
    "GPT": model("OpenAIGPT", GPT2),
    "CodeGen": model("CodeGen", {**GPT2, "rotary_dim": 4, "n_head": 4, "n_embd": 64}),
    "Persimmon": model("Persimmon", {**BERT, "hidden_size": 96}),
    "mBART": two_sided("MBart", BART),
    "mT5": two_sided("MT5", T5),
    "Pegasus": two_sided("Pegasus", BART),
    "Blenderbot": two_sided("Blenderbot", BART),
    "M2M-100": two_sided("M2M100", BART),
    "LED": two_sided("LED", LED),
    "ProphetNet": two_sided("ProphetNet", PROPHET),
    "Nyströmformer": model("Nystromformer", NYSTROM),
    "DeBERTa": model("Deberta", DEBERTA),
    "ConvBERT": model("ConvBert", {**BERT, "embedding_size": 30, "head_ratio": 2}),
    "XLM": model("XLM", XLM),
    "RoFormer": model("RoFormer", {**BERT, "embedding_size": D}),
    "I-BERT": model("IBert", BERT),
    "ERNIE, padding": model("Ernie", BERT, **PADDED),
    "BioGPT": model("BioGpt", BERT),
    "Granite": model("Granite", LLAMA),
    "Phi-3": model("Phi3", {**LLAMA, "sliding_window": 4}),
    "StarCoder 2": model("Starcoder2", LLAMA),
    "Nemotron": model("Nemotron", {**LLAMA, "hidden_size": 96}),
    "GLM": model("Glm", {**GEMMA, "head_dim": HD + 2}),
    "DeepSeek-V3": model("DeepseekV3", {**LLAMA, **LATENT}),
    "Qwen 3, cache": cached("Qwen3", GEMMA, "eager"),
    "Falcon, cache": cached("Falcon", FALCON),
    "GPT-NeoX, sdpa, padding": model("GPTNeoX", NEOX, "sdpa", **PADDED),
    "MPT, padding": model("Mpt", MPT, **PADDED),
    "SegFormer": picture("Segformer", PYRAMID, size=WIDE),
    "PVT v2": picture("PvtV2", PYRAMID, size=WIDE),
    "YOLOS": picture("Yolos", {**VIT, "num_detection_tokens": 10}),
    "DINOv2 with registers": picture("Dinov2WithRegisters", SQUARE),
    "ViT-MAE": picture("ViTMAE", SQUARE, size=TALL),
    "I-JEPA": picture("IJepa", SQUARE, size=TALL),
    "Hiera": picture("Hiera", {"image_size": [64, 64], "embed_dim": 24}, size=SMALL),
    "MobileViT": picture("MobileViT", MOBILE, size=SMALL),
}
