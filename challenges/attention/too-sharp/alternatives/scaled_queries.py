"""Self-attention over patches; queries are scaled before they meet the keys."""

import math

from torch import nn


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.h = num_heads
        self.d = embed_dim // num_heads
        self.qkv_proj = nn.Linear(embed_dim, 3 * embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)
        self.norm = nn.LayerNorm(embed_dim)

    def forward(self, x, mask=None):
        b, n, _ = x.shape
        q, k, v = self.qkv_proj(x).view(b, n, 3, self.h, self.d).permute(2, 0, 3, 1, 4)
        q = q / math.sqrt(self.d)
        attn = q @ k.transpose(-2, -1)
        if mask is not None:
            attn = attn.masked_fill(mask.unsqueeze(1), -math.inf)
        attn = attn.softmax(dim=-1)
        y = (attn @ v).transpose(1, 2).reshape(b, n, self.h * self.d)
        return self.norm(self.out_proj(y)) + x
