"""The result of the frames-first layout is reshaped, not transposed, back to batch first."""

import torch
from torch import nn


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.qkv_proj = nn.Linear(embed_dim, 3 * embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)
        self.norm = nn.LayerNorm(embed_dim)

    def forward(self, x, mask=None):
        B, S, D = x.shape
        q, k, v = self.qkv_proj(x.transpose(0, 1)).chunk(3, dim=-1)  # each (S, B, D)
        q, k, v = (
            t.contiguous().view(S, B * self.num_heads, self.head_dim).transpose(0, 1)
            for t in (q, k, v)
        )
        bias = x.new_zeros(B, S, S)
        if mask is not None:
            bias = bias.masked_fill(mask, float("-inf"))
        bias = bias.repeat_interleave(self.num_heads, dim=0)
        weights = torch.baddbmm(bias, q, k.mT, alpha=self.head_dim**-0.5).softmax(dim=-1)
        merged = torch.bmm(weights, v).transpose(0, 1).reshape(B, S, D)
        return x + self.norm(self.out_proj(merged))
