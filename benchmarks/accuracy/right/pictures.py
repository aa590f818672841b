"""Models of pictures and sound of transformers: patches, windows and frames."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"  # before transformers is imported

import torch
from torch import nn

from benchmarks.accuracy.right import Given
from benchmarks.accuracy.right.text import BART, BERT, ENDS, LAYERS, B, T, V, ids

LIBRARY = "transformers"
PATCH, HEIGHT, WIDTH, MELS, FRAMES = 9, 36, 63, 10, 34


def made(name: str, attends: str, sizes: dict[str, Any], kind: str = "Model") -> nn.Module:
    import transformers

    config = getattr(transformers, f"{name}Config")(**sizes, attn_implementation=attends)
    model: nn.Module = getattr(transformers, name + kind)(config)
    return model.eval()


def picture(
    name: str,
    sizes: dict[str, Any],
    attends: str = "eager",
    size: tuple[int, int] = (HEIGHT, WIDTH),
) -> Callable[[], Given]:
    def build() -> Given:
        pixels = torch.randn(B, 3, *size)
        return Given(made(name, attends, sizes), {"pixel_values": pixels}, "pixel_values: B C h w")

    return build


def whisper(attends: str) -> Callable[[], Given]:
    def build() -> Given:
        sizes = {**BART, **ENDS, "vocab_size": V, "num_mel_bins": MELS, "max_target_positions": 64}
        more = {"max_source_positions": FRAMES // 2, "decoder_start_token_id": 1}
        call = {"input_features": torch.randn(B, MELS, FRAMES), "decoder_input_ids": ids(T)}
        dims = "input_features: B M F, decoder_input_ids: B T"
        return Given(made("Whisper", attends, {**sizes, **more}), call, dims)

    return build


VIT = {**BERT, "num_hidden_layers": LAYERS, "image_size": (HEIGHT, WIDTH), "patch_size": PATCH}
SQUARE = {**VIT, "image_size": WIDTH}  # positions are interpolated for what is not square
SWIN = {"image_size": (56, 84), "patch_size": 4, "embed_dim": 24, "window_size": 7}
SWIN |= {"depths": [2, 2], "num_heads": [2, 4]}

MODELS: dict[str, Callable[[], Given]] = {
    "ViT": picture("ViT", VIT),
    "ViT, sdpa": picture("ViT", VIT, "sdpa"),
    "DINOv2": picture("Dinov2", SQUARE),
    "DINOv2, sdpa": picture("Dinov2", SQUARE, "sdpa"),
    "DeiT": picture("DeiT", VIT),
    "BEiT": picture("Beit", {**SQUARE, "use_relative_position_bias": True}, size=(WIDTH, WIDTH)),
    "CLIP, vision": picture("CLIPVision", SQUARE, size=(WIDTH, WIDTH)),
    "SigLIP, vision": picture("SiglipVision", SQUARE, size=(WIDTH, WIDTH)),
    "Swin": picture("Swin", SWIN, size=(56, 84)),
    "Swin v2": picture("Swinv2", SWIN, size=(56, 84)),
    "Whisper": whisper("eager"),
    "Whisper, sdpa": whisper("sdpa"),
}
