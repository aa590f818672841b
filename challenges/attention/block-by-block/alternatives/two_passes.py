"""Reads the keys twice: first for the peak of each query, then for its sums."""

import torch
from torch import nn


class BlockwiseAttention(nn.Module):
    def __init__(self, dim, heads, block):
        super().__init__()
        self.heads, self.block = heads, block
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def scores(self, q, keys, keep, at):
        logits = torch.einsum("bqhd,bkhd->bhqk", q, keys) * q.shape[-1] ** -0.5
        n = torch.arange(q.shape[1], device=q.device)
        shut = n[at : at + keys.shape[1]] > n[:, None]
        if keep is not None:
            shut = shut | keep.logical_not()[:, None, None, at : at + keys.shape[1]]
        return logits.masked_fill(shut, float("-inf"))

    def forward(self, x, keep=None):
        qkv = self.qkv(x).to(torch.promote_types(x.dtype, torch.float32))
        q, k, v = (t.unflatten(-1, (self.heads, -1)) for t in qkv.chunk(3, -1))
        pieces = list(enumerate(zip(k.split(self.block, 1), v.split(self.block, 1))))
        with torch.no_grad():  # softmax does not depend on what is taken off
            peak = torch.full(q.mT.shape[:1], -3e38, dtype=q.dtype, device=q.device)
            peak = peak[:, None, None, None]
            for i, (keys, _) in pieces:
                highest = self.scores(q, keys, keep, i * self.block).amax(-1, keepdim=True)
                peak = torch.maximum(peak, highest)
        top = bottom = 0.0
        for i, (keys, values) in pieces:
            powers = (self.scores(q, keys, keep, i * self.block) - peak).exp()
            top = top + torch.einsum("bhqk,bkhd->bqhd", powers, values)
            bottom = bottom + powers.sum(-1)
        bottom = bottom.mT.unsqueeze(-1)
        out = torch.where(bottom > 0, top / bottom.clamp(min=0.5), torch.zeros_like(top))
        return self.proj(out.flatten(2).type_as(x))
