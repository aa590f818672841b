"""Self-attention that slices the projection's weight instead of its output."""

import torch
import torch.nn.functional as F
from torch import nn


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, embed_dim: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads, self.head_dim = num_heads, embed_dim // num_heads
        self.qkv_proj = nn.Linear(embed_dim, 3 * embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)
        self.norm = nn.LayerNorm(embed_dim)

    def _project(self, x: torch.Tensor, which: int) -> torch.Tensor:
        weight = self.qkv_proj.weight.chunk(3)[which]
        bias = self.qkv_proj.bias.chunk(3)[which]
        flat = F.linear(x, weight, bias)
        return flat.view(*x.shape[:2], self.num_heads, self.head_dim).swapaxes(1, 2)

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        query, key, value = (self._project(x, which) for which in range(3))
        if mask is not None:
            mask = ~mask.unsqueeze(1)  # scaled_dot_product_attention: True = takes part
        out = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        return self.norm(self.out_proj(out.swapaxes(1, 2).flatten(-2))) + x
