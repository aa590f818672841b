"""The null key is open to every row, so that all rows lose weight to it."""

import torch
from torch import Tensor, nn


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, embed_dim: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads, self.head_dim = num_heads, embed_dim // num_heads
        self.qkv_proj = nn.Linear(embed_dim, 3 * embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)
        self.norm = nn.LayerNorm(embed_dim)

    def weights(self, scores: Tensor, mask: Tensor) -> Tensor:
        forbidden = mask.unsqueeze(1)
        alone = forbidden.all(dim=-1, keepdim=True)
        null = scores.new_zeros(alone.shape)
        null = null.expand(*scores.shape[:-1], 1)
        keys = torch.cat([scores.masked_fill(forbidden, -torch.inf), null], dim=-1)
        return keys.softmax(dim=-1)[..., :-1]

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        B, S, D = x.shape
        qkv = self.qkv_proj(x).reshape(B, S, 3, self.num_heads, self.head_dim)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        scores = q @ k.mT * self.head_dim**-0.5
        weights = scores.softmax(dim=-1) if mask is None else self.weights(scores, mask)
        return self.norm(self.out_proj((weights @ v).transpose(1, 2).reshape(B, S, D))) + x
