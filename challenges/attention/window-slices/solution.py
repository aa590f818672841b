"""Attention to a few tokens back, for texts that are far longer than the window."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class LocalAttention(nn.Module):
    """Each token attends to itself and to the window - 1 tokens before it."""

    def __init__(self, dim: int, heads: int, window: int):
        super().__init__()
        self.heads, self.window = heads, window
        self.to_qkv = nn.Linear(dim, 3 * dim)
        self.to_out = nn.Linear(dim, dim)

    def windows(self, t: Tensor) -> Tensor:
        """What each token may look at: (B, H, S, hd) -> (B, H, S, hd, window), oldest first."""
        return F.pad(t, (0, 0, self.window - 1, 0)).unfold(2, self.window, 1)

    def weigh(self, q: Tensor, k: Tensor) -> Tensor:
        """Weights of each token's window, (B, H, S, window)."""
        scores = torch.einsum("bhsc,bhscw->bhsw", q, self.windows(k)) * q.shape[-1] ** -0.5
        back = torch.arange(self.window - 1, -1, -1, device=q.device)
        exists = torch.arange(q.shape[2], device=q.device)[:, None] >= back
        return scores.masked_fill(~exists, float("-inf")).softmax(dim=-1)

    def forward(self, x: Tensor) -> Tensor:
        qkv = self.to_qkv(x).unflatten(-1, (3, self.heads, -1))
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        mixed = torch.einsum("bhsw,bhscw->bshc", self.weigh(q, k), self.windows(v))
        return self.to_out(mixed.flatten(2))
