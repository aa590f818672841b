"""Multi-head self-attention that keeps the q/k/v axis, of length 1, up to the merge."""

import math

from torch import nn


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, embed_dim: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.qkv_proj = nn.Linear(embed_dim, 3 * embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)
        self.norm = nn.LayerNorm(embed_dim)

    def forward(self, x, mask=None):
        batch, seq, _ = x.shape
        qkv = self.qkv_proj(x).reshape(batch, seq, 3, self.num_heads, self.head_dim)
        q, k, v = qkv.permute(0, 2, 3, 1, 4).chunk(3, dim=1)  # each (B, 1, H, S, hd)

        scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)  # (B, 1, H, S, S)
        if mask is not None:
            scores = scores.masked_fill(mask[:, None, None], float("-inf"))
        context = scores.softmax(dim=-1) @ v  # (B, 1, H, S, hd)

        context = context.squeeze(1).transpose(1, 2).flatten(2)
        return self.norm(self.out_proj(context)) + x
