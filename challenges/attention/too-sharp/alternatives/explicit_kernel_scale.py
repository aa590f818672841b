"""Self-attention over patches on the fused kernel, with its scale spelled out."""

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, embed_dim: int, num_heads: int) -> None:
        super().__init__()
        self.head_dim = embed_dim // num_heads
        self.qkv_proj = nn.Linear(embed_dim, 3 * embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)
        self.norm = nn.LayerNorm(embed_dim)

    def forward(self, x, mask=None):
        q, k, v = [
            torch.stack(part.split(self.head_dim, dim=-1), dim=1)
            for part in torch.tensor_split(self.qkv_proj(x), 3, dim=-1)
        ]
        bias = None
        if mask is not None:
            bias = x.new_zeros(mask.shape).masked_fill_(mask, float("-inf")).unsqueeze(1)
        seen = scaled_dot_product_attention(q, k, v, bias, scale=1.0 / self.head_dim**0.5)
        return self.norm(self.out_proj(torch.cat(seen.unbind(1), dim=-1))) + x
