"""Every head has a slice of its own in three-axis weights; einsum keeps heads apart."""

import torch
from torch import nn


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        hd = embed_dim // num_heads
        self.scale = hd**-0.5
        for name in "QKV":
            setattr(self, f"W_{name}", nn.Parameter(torch.randn(num_heads, embed_dim, hd) * 0.1))
            setattr(self, f"b_{name}", nn.Parameter(torch.zeros(num_heads, hd)))
        self.W_O = nn.Parameter(torch.randn(num_heads, hd, embed_dim) * 0.1)
        self.b_O = nn.Parameter(torch.zeros(embed_dim))
        self.ln = nn.LayerNorm(embed_dim)

    def forward(self, x, mask=None):
        q = torch.einsum("bsd,hde->bhse", x, self.W_Q) + self.b_Q[:, None]
        k = torch.einsum("bsd,hde->bhse", x, self.W_K) + self.b_K[:, None]
        v = torch.einsum("bsd,hde->bhse", x, self.W_V) + self.b_V[:, None]
        scores = torch.einsum("bhqe,bhke->bhqk", q, k) * self.scale
        if mask is not None:
            scores = scores.masked_fill(mask[:, None], -torch.inf)
        heads = scores.softmax(-1) @ v
        return self.ln(torch.einsum("bhqe,hed->bqd", heads, self.W_O) + self.b_O) + x
