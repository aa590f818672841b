"""The attention modules of PyTorch itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from benchmarks.accuracy.right import Given

LIBRARY = "torch"
B, T, S, H, D, F = 15, 7, 11, 6, 84, 201

causal = torch.ones(S, S, dtype=torch.bool).triu(1)
x, memory = torch.randn(B, S, D), torch.randn(B, T, D)
hidden = torch.arange(S) >= 4 + torch.arange(B)[:, None] * 5 % 8  # (B, S), True = padding
hidden_memory = torch.arange(T) >= 2 + torch.arange(B)[:, None] * 5 % 6


def laid(t: torch.Tensor, batch_first: bool) -> torch.Tensor:
    return t if batch_first else t.transpose(0, 1).contiguous()


def order(batch_first: bool, length: str = "S") -> str:
    return f"B {length} D" if batch_first else f"{length} B D"


def multihead(batch_first: bool, cross: bool = False, **more: Any) -> Callable[[], Given]:
    def build() -> Given:
        other = laid(memory if cross else x, batch_first)
        call = {"query": laid(x, batch_first), "key": other, "value": other, **more}
        length = "T" if cross else "S"
        dims = f"query: {order(batch_first)}, key: {order(batch_first, length)}"
        dims += f", value: {order(batch_first, length)}"
        for name, mask in more.items():
            if isinstance(mask, torch.Tensor):
                rows = "B" if name == "key_padding_mask" else "S"
                dims += f", {name}: {rows} {length}"
        return Given(nn.MultiheadAttention(D, H, batch_first=batch_first).eval(), call, dims)

    return build


def encoder(batch_first: bool, norm_first: bool, **more: Any) -> Callable[[], Given]:
    def build() -> Given:
        layer = nn.TransformerEncoderLayer(
            D, H, F, batch_first=batch_first, norm_first=norm_first, activation="gelu"
        )
        dims = f"src: {order(batch_first)}"
        dims += ", src_mask: S S" if "src_mask" in more else ""
        dims += ", src_key_padding_mask: B S" if "src_key_padding_mask" in more else ""
        return Given(layer.eval(), {"src": laid(x, batch_first), **more}, dims)

    return build


def stack() -> Given:
    layer = nn.TransformerEncoderLayer(D, H, F, batch_first=True)
    module = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False).eval()
    return Given(module, {"src": x, "mask": causal}, "src: B S D, mask: S S")


def decoder(batch_first: bool) -> Callable[[], Given]:
    def build() -> Given:
        layer = nn.TransformerDecoderLayer(D, H, F, batch_first=batch_first).eval()
        call = {
            "tgt": laid(x, batch_first),
            "memory": laid(memory, batch_first),
            "tgt_mask": causal,
            "memory_key_padding_mask": hidden_memory,
        }
        dims = f"tgt: {order(batch_first)}, memory: {order(batch_first, 'T')}, tgt_mask: S S"
        return Given(layer, call, dims + ", memory_key_padding_mask: B T")

    return build


def transformer() -> Given:
    module = nn.Transformer(D, H, 2, 2, F, batch_first=True).eval()
    return Given(module, {"src": memory, "tgt": x}, "src: B T D, tgt: B S D")


MODELS: dict[str, Callable[[], Given]] = {
    "MultiheadAttention": multihead(True),
    "MultiheadAttention, sequence first": multihead(False),
    "MultiheadAttention, cross": multihead(True, cross=True),
    "MultiheadAttention, cross, sequence first": multihead(False, cross=True),
    "MultiheadAttention, causal": multihead(True, attn_mask=causal, need_weights=False),
    "MultiheadAttention, padding": multihead(False, key_padding_mask=hidden),
    "MultiheadAttention, weights of each head": multihead(True, average_attn_weights=False),
    "TransformerEncoderLayer": encoder(True, norm_first=False),
    "TransformerEncoderLayer, sequence first": encoder(False, norm_first=False),
    "TransformerEncoderLayer, pre-norm, causal": encoder(True, norm_first=True, src_mask=causal),
    "TransformerEncoderLayer, padding": encoder(
        True, norm_first=False, src_key_padding_mask=hidden
    ),
    "TransformerEncoder, 3 layers, causal": stack,
    "TransformerDecoderLayer": decoder(True),
    "TransformerDecoderLayer, sequence first": decoder(False),
    "Transformer": transformer,
}
