"""Self-attention in einsum letters: b batch, i query, j key, n head, c channel of a head."""

import torch
from torch import einsum, nn


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, embed_dim: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.qkv_proj = nn.Linear(embed_dim, 3 * embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)
        self.norm = nn.LayerNorm(embed_dim)

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        q, k, v = self.qkv_proj(x).unflatten(2, (3, self.num_heads, -1)).unbind(2)
        logits = einsum("binc,bjnc->bnij", q, k).mul(q.shape[-1] ** -0.5)
        if mask is not None:
            hidden = torch.zeros_like(mask, dtype=logits.dtype).masked_fill(mask, -torch.inf)
            logits = logits + hidden[:, None]
        mixed = einsum("bnij,bjnc->binc", logits.softmax(-1), v).flatten(2)
        return self.norm(self.out_proj(mixed)).add(x)
