"""Multi-head self-attention on top of the fused kernel."""

import torch.nn as nn
import torch.nn.functional as F


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        assert embed_dim % num_heads == 0
        self.num_heads = num_heads
        self.qkv_proj = nn.Linear(embed_dim, embed_dim * 3)
        self.out_proj = nn.Linear(embed_dim, embed_dim)
        self.norm = nn.LayerNorm(embed_dim)

    def forward(self, x, mask=None):
        b, s, d = x.shape
        qkv = self.qkv_proj(x).view(b, s, 3, self.num_heads, d // self.num_heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        # the kernel reads a boolean mask the other way round: True = may attend
        allowed = None if mask is None else mask.logical_not()[:, None]
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)
        y = y.permute(0, 2, 1, 3).reshape(b, s, d)
        return self.norm(self.out_proj(y)) + x
