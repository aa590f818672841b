"""The slice of keys ends one too late: the next character is in it."""

import torch
from torch import nn


class CausalSelfAttention(nn.Module):
    def __init__(self, embed_dim: int, num_heads: int) -> None:
        super().__init__()
        self.head_dim = embed_dim // num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)

    def _stack(self, t):
        return torch.stack(t.split(self.head_dim, dim=-1), dim=1)

    def forward(self, x):
        q, k, v = (
            self._stack(self.q_proj(x)),
            self._stack(self.k_proj(x)),
            self._stack(self.v_proj(x)),
        )
        steps = []
        for now in range(x.shape[1]):
            until = now + 2
            scores = (k[:, :, :until] @ q[:, :, now, :, None]).squeeze(-1)
            weights = (scores / self.head_dim**0.5).softmax(-1)
            steps.append((weights.unsqueeze(-2) @ v[:, :, :until]).squeeze(-2))
        y = torch.stack(steps, dim=1)  # (B, T, H, hd)
        return self.out_proj(y.flatten(2))
