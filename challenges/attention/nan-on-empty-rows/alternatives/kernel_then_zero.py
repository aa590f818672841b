"""Self-attention over padded documents: empty rows see everything, and their result is dropped."""

import torch.nn.functional as F
from torch import nn


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.qkv_proj = nn.Linear(embed_dim, 3 * embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)
        self.norm = nn.LayerNorm(embed_dim)

    def forward(self, x, mask=None):
        b, s, d = x.shape
        q, k, v = self.qkv_proj(x).view(b, s, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        if mask is None:
            heads = F.scaled_dot_product_attention(q, k, v)
        else:
            allowed = ~mask[:, None]
            some = allowed.any(dim=-1, keepdim=True)
            heads = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed | ~some)
            heads = heads * some
        return self.norm(self.out_proj(heads.transpose(1, 2).reshape(b, s, d))) + x
