"""Attention whose scores cannot run away: normed queries and keys, a soft cap, a sink per head."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def rms_norm(t: Tensor, gain: Tensor, eps: float = 1e-6) -> Tensor:
    """Brings the last axis to a root mean square of 1, then multiplies by `gain`."""
    wide = t.to(torch.promote_types(t.dtype, torch.float32))
    normed = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
    return normed.to(t.dtype) * gain


class BoundedAttention(nn.Module):
    """Self-attention; `mask` is True where a key may be attended to."""

    def __init__(self, dim: int, heads: int, dropout: float, cap: float) -> None:
        super().__init__()
        self.heads, self.dropout, self.cap = heads, dropout, cap
        self.to_q = nn.Linear(dim, dim, bias=False)
        self.to_k = nn.Linear(dim, dim, bias=False)
        self.to_v = nn.Linear(dim, dim, bias=False)
        self.q_gain = nn.Parameter(torch.ones(dim // heads))
        self.k_gain = nn.Parameter(torch.ones(dim // heads))
        self.sink = nn.Parameter(torch.zeros(heads))  # a logit that belongs to no key
        self.to_out = nn.Linear(dim, dim, bias=False)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        q = self.to_q(x).unflatten(-1, (self.heads, -1))  # b s h d
        k = self.to_k(x).unflatten(-1, (self.heads, -1))
        v = self.to_v(x).unflatten(-1, (self.heads, -1))
        q = rms_norm(q, self.q_gain)
        k = rms_norm(k, self.k_gain)

        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
        scores = self.cap * torch.tanh(scores / self.cap)
        if mask is not None:
            scores = scores.masked_fill(~mask[:, None], float("-inf"))

        sink = self.sink.view(1, -1, 1, 1).expand(*scores.shape[:-1], 1)
        weights = torch.cat([scores, sink], dim=-1).softmax(dim=-1)[..., :-1]
        weights = F.dropout(weights, self.dropout, self.training)
        return self.to_out(torch.einsum("bhqk,bkhd->bqhd", weights, v).flatten(2))
