"""Attention over long texts: there is never a score for each pair of tokens."""

import torch
from torch import Tensor, nn


class BlockwiseAttention(nn.Module):
    """Causal self-attention by an online softmax over blocks of keys."""

    def __init__(self, dim: int, heads: int, block: int) -> None:
        super().__init__()
        self.heads, self.block = heads, block
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        wide = torch.promote_types(x.dtype, torch.float32)
        qkv = self.qkv(x).to(wide).unflatten(-1, (3, self.heads, -1))
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # (B, H, S, hd) each
        q = q / q.shape[-1] ** 0.5
        place = torch.arange(x.shape[1], device=x.device)

        peak = torch.full_like(q[..., :1], -torch.inf)  # the largest score so far, of each query
        total = torch.zeros_like(peak)  # the sum of exp(score - peak)
        mixed = torch.zeros_like(q)  # and of exp(score - peak) * value
        for start in range(0, x.shape[1], self.block):
            part = slice(start, start + self.block)
            seen = place[part] <= place[:, None]
            if keep is not None:
                seen = seen & keep[:, None, None, part]
            scores = (q @ k[:, :, part].mT).masked_fill(~seen, -torch.inf)
            peak, before = torch.maximum(peak, scores.amax(dim=-1, keepdim=True)), peak
            base = peak.masked_fill(peak == -torch.inf, 0.0)  # nothing seen so far
            shrink = torch.exp(before - base)
            powers = torch.exp(scores - base)
            total = total * shrink + powers.sum(dim=-1, keepdim=True)
            mixed = mixed * shrink + powers @ v[:, :, part]

        mixed = mixed / total.masked_fill(total == 0, 1.0)
        return self.proj(mixed.to(x.dtype).transpose(1, 2).flatten(2))
