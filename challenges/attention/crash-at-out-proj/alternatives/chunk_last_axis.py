"""Multi-head self-attention: features are cut first, heads second."""

import torch
from torch import Tensor, nn


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, embed_dim: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.qkv_proj = nn.Linear(embed_dim, 3 * embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)
        self.norm = nn.LayerNorm(embed_dim)

    def split_heads(self, t: Tensor) -> Tensor:
        B, S, D = t.shape
        return t.view(B, S, self.num_heads, D // self.num_heads).transpose(1, 2)

    def merge_heads(self, t: Tensor) -> Tensor:
        B, H, S, hd = t.shape
        return t.transpose(1, 2).contiguous().view(B, S, H * hd)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        q, k, v = (self.split_heads(t) for t in self.qkv_proj(x).chunk(3, dim=-1))
        scores = torch.matmul(q * q.size(-1) ** -0.5, k.mT)
        if mask is not None:
            scores = scores.masked_fill(mask.unsqueeze(1), torch.finfo(scores.dtype).min)
        out = self.merge_heads(torch.matmul(scores.softmax(-1), v))
        return x + self.norm(self.out_proj(out))
