"""Causal self-attention; the mask comes from comparing positions, heads stay on axis 2."""

import torch
from torch import nn


class CausalSelfAttention(nn.Module):
    def __init__(self, embed_dim: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads, self.head_dim = num_heads, embed_dim // num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shape = (*x.shape[:2], self.num_heads, self.head_dim)
        q = self.q_proj(x).reshape(shape) * self.head_dim**-0.5
        k = self.k_proj(x).reshape(shape)
        v = self.v_proj(x).reshape(shape)

        position = torch.arange(x.shape[1], device=x.device)
        later = position[None, :] > position[:, None]  # (query, key)
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k)
        scores = scores.masked_fill(later, torch.finfo(scores.dtype).min)
        y = torch.einsum("bhqk,bkhd->bqhd", scores.softmax(dim=-1), v)
        return self.out_proj(y.flatten(2))
