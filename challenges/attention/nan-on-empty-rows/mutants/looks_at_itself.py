"""A row without keys is allowed to look at itself."""

import torch
from torch import nn


class MultiHeadSelfAttention(nn.Module):
    """Attention among the words of a document.

    `mask` is (batch, words, words) and True for a pair that must not meet: padding, or words
    of another document that was packed into the same row.
    """

    def __init__(self, embed_dim: int, num_heads: int) -> None:
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError("embed_dim must be a multiple of num_heads")
        self.heads = num_heads
        self.width = embed_dim // num_heads
        self.qkv_proj = nn.Linear(embed_dim, 3 * embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)
        self.norm = nn.LayerNorm(embed_dim)

    def forward(self, x, mask=None):
        docs, words, dim = x.shape
        qkv = self.qkv_proj(x).view(docs, words, 3, self.heads, self.width)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)

        scores = torch.matmul(q, k.mT) / self.width**0.5
        if mask is not None:
            empty = mask.all(dim=-1, keepdim=True)
            bias = torch.zeros(mask.shape, dtype=x.dtype, device=x.device)
            bias = bias.masked_fill(
                mask & ~(empty & torch.eye(words, dtype=torch.bool, device=x.device)), float("-inf")
            )
            scores = scores + bias.unsqueeze(1)
        weights = torch.softmax(scores, dim=-1)

        context = torch.matmul(weights, v)
        context = context.transpose(1, 2).reshape(docs, words, dim)
        return self.norm(self.out_proj(context)) + x
