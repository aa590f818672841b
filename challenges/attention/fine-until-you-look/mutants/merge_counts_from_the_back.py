"""Only the merge is mended: right for one sentence, four axes for a batch with a mask."""

from math import sqrt

import torch
import torch.nn as nn
import torch.nn.functional as F


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        assert embed_dim % num_heads == 0, "the heads must share embed_dim evenly"
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads

        self.qkv_proj = nn.Linear(embed_dim, 3 * embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)
        self.norm = nn.LayerNorm(embed_dim)

    def attend(self, q, k, v, mask):
        logits = torch.matmul(q, k.transpose(-1, -2)) / sqrt(self.head_dim)
        if mask is not None:
            logits = logits.masked_fill(mask.unsqueeze(1), float("-inf"))
        return torch.matmul(F.softmax(logits, dim=-1), v)

    def forward(self, x, mask=None):
        # mask[b, i, j] is True where word i must not see word j
        B, S, _ = x.shape
        packed = self.qkv_proj(x).reshape(B, S, 3, self.num_heads, self.head_dim)
        packed = packed.permute(0, 2, 3, 1, 4)
        q, k, v = packed.chunk(3, dim=1)

        heads = self.attend(q, k, v, mask)
        words = heads.transpose(-3, -2).flatten(-2).squeeze(1)

        return self.norm(self.out_proj(words)) + x
