"""Self-attention that shares the scaling between queries and keys, for the sake of half precision."""

import torch
from torch import Tensor, nn


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, embed_dim: int, num_heads: int) -> None:
        super().__init__()
        self.shape = (num_heads, embed_dim // num_heads)
        self.qkv_proj = nn.Linear(embed_dim, 3 * embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)
        self.norm = nn.LayerNorm(embed_dim)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        q, k, v = self.qkv_proj(x).unflatten(-1, (3, *self.shape)).transpose(1, 3).unbind(2)
        root = self.shape[1] ** -0.25
        logits = (q * root) @ (k * root).mT
        if mask is not None:
            # the lowest finite number is enough: exp() of it is exactly 0
            lowest = torch.finfo(logits.dtype).min
            logits = torch.where(mask.unsqueeze(1), lowest, logits)
        context = torch.softmax(logits, dim=-1) @ v
        return x + self.norm(self.out_proj(context.transpose(1, 2).flatten(2)))
