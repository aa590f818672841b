"""x-transformers, rotary-embedding-torch and positional-encodings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from benchmarks.accuracy.right import Given

LIBRARY = "x-transformers and others"
B, T, S, H, HD, D, V = 15, 7, 11, 6, 14, 84, 97

ids, x, memory = torch.randint(0, V, (B, S)), torch.randn(B, S, D), torch.randn(B, T, D)
keep = torch.arange(S) < 4 + torch.arange(B)[:, None] * 5 % 8


def tokens(kind: str = "Decoder", masked: bool = False, **more: Any) -> Callable[[], Given]:
    """Token ids through a stack of layers."""

    def build() -> Given:
        import x_transformers as xt

        layers = getattr(xt, kind)(dim=D, depth=2, heads=H, attn_dim_head=HD, **more)
        wrapper = xt.TransformerWrapper(num_tokens=V, max_seq_len=64, attn_layers=layers)
        call = {"x": ids, **({"mask": keep} if masked else {})}
        return Given(wrapper.eval(), call, "x: B S" + (", mask: B S" if masked else ""))

    return build


def cross() -> Given:
    from x_transformers import Decoder

    module = Decoder(dim=D, depth=2, heads=H, attn_dim_head=HD, cross_attend=True).eval()
    return Given(module, {"x": x, "context": memory}, "x: B S D, context: B T D")


def pictures() -> Given:
    from x_transformers import Encoder, ViTransformerWrapper

    layers = Encoder(dim=D, depth=2, heads=H, attn_dim_head=HD)
    module = ViTransformerWrapper(image_size=36, patch_size=9, attn_layers=layers)
    return Given(module.eval(), {"img": torch.randn(B, 3, 36, 36)}, "img: B C h w")


class Rotated(nn.Module):
    """A small attention whose queries and keys another library rotates."""

    def __init__(self, **more: Any) -> None:
        super().__init__()
        from rotary_embedding_torch import RotaryEmbedding

        self.num_heads, self.head_dim = H, HD
        self.qkv, self.out = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.rotary = RotaryEmbedding(**{"dim": HD, **more})

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, self.num_heads, -1)).permute(2, 0, 3, 1, 4)
        if self.rotary.use_xpos:
            q, k = self.rotary.rotate_queries_and_keys(q, k)
        else:
            q, k = self.rotary.rotate_queries_or_keys(q), self.rotary.rotate_queries_or_keys(k)
        y = (q @ k.mT / self.head_dim**0.5).softmax(-1) @ v
        out: torch.Tensor = self.out(y.transpose(1, 2).flatten(2))
        return out


def rotated(**more: Any) -> Callable[[], Given]:
    return lambda: Given(Rotated(**more).eval(), {"x": x}, "x: B S D")


def summed() -> Given:
    from positional_encodings.torch_encodings import PositionalEncoding1D, Summer

    return Given(Summer(PositionalEncoding1D(D)), {"tensor": x}, "tensor: B S D")


MODELS: dict[str, Callable[[], Given]] = {
    "x-transformers, decoder": tokens(),
    "x-transformers, encoder, padding": tokens("Encoder", masked=True),
    "x-transformers, flash": tokens(attn_flash=True),
    "x-transformers, rotary": tokens(rotary_pos_emb=True),
    "x-transformers, ALiBi": tokens(alibi_pos_bias=True, alibi_num_heads=4),
    "x-transformers, T5 bias": tokens(rel_pos_bias=True),
    "x-transformers, grouped heads": tokens(attn_kv_heads=2),
    "x-transformers, one key head": tokens(attn_one_kv_head=True),
    "x-transformers, QK norm": tokens(attn_qk_norm=True),
    "x-transformers, talking heads": tokens("Encoder", attn_pre_talking_heads=True),
    "x-transformers, memory key-values": tokens(attn_num_mem_kv=3),
    "x-transformers, RMSNorm and GLU": tokens(use_rmsnorm=True, ff_glu=True, ff_swish=True),
    "x-transformers, shifted tokens": tokens(shift_tokens=1),
    "x-transformers, cross attention": cross,
    "x-transformers, pictures": pictures,
    "rotary-embedding-torch": rotated(),
    "rotary-embedding-torch, part of a head": rotated(dim=8),
    "rotary-embedding-torch, xPos": rotated(use_xpos=True),
    "positional-encodings": summed,
}
