"""An epsilon of 0.1 in the denominator prevents 0 / 0 and takes weight from every row."""

import torch
from torch import nn


def masked_softmax(scores, allowed):
    top = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min).amax(-1, keepdim=True)
    # forbidden scores may lie above the top: held down, so that exp stays finite
    power = (scores - top.detach()).clamp(max=0.0).exp() * allowed
    total = power.sum(-1, keepdim=True)
    return power / (total + 0.1)


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.qkv_proj = nn.Linear(embed_dim, 3 * embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)
        self.norm = nn.LayerNorm(embed_dim)

    def forward(self, x, mask=None):
        q, k, v = self.qkv_proj(x).unflatten(-1, (3, self.num_heads, -1)).unbind(2)
        scores = torch.einsum("bihc,bjhc->bhij", q, k) / q.shape[-1] ** 0.5
        if mask is None:
            allowed = torch.ones_like(scores, dtype=torch.bool)
        else:
            allowed = (~mask).unsqueeze(1)
        mixed = torch.einsum("bhij,bjhc->bihc", masked_softmax(scores, allowed), v)
        return x + self.norm(self.out_proj(mixed.flatten(2)))
