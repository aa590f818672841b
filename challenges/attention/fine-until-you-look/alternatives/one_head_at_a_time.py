"""Self-attention with a plain loop over the heads: slow, and easy to follow."""

import torch
from torch import nn


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, embed_dim: int, num_heads: int) -> None:
        super().__init__()
        self.embed_dim = embed_dim
        self.head_dim = embed_dim // num_heads
        self.qkv_proj = nn.Linear(embed_dim, 3 * embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)
        self.norm = nn.LayerNorm(embed_dim)

    def forward(self, x, mask=None):
        queries, keys, values = self.qkv_proj(x).split(self.embed_dim, dim=2)
        contexts = []
        for start in range(0, self.embed_dim, self.head_dim):
            own = slice(start, start + self.head_dim)
            scores = torch.bmm(queries[..., own], keys[..., own].transpose(1, 2))
            scores = scores / self.head_dim**0.5
            if mask is not None:
                scores[mask] = -torch.inf
            contexts.append(torch.bmm(scores.softmax(dim=2), values[..., own]))
        return x + self.norm(self.out_proj(torch.cat(contexts, dim=2)))
