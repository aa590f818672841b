"""Finishes each block by itself, and joins blocks by the logarithms of their sums."""

import torch
from torch import nn


def joined(out, lse, new, new_lse):
    both = torch.logaddexp(lse, new_lse)
    empty = both == -torch.inf
    base = both.masked_fill(empty, 0.0)
    return out * (lse - base).exp() + new * (new_lse - base).exp(), both


class BlockwiseAttention(nn.Module):
    def __init__(self, dim, heads, block):
        super().__init__()
        self.heads, self.block = heads, block
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x, keep=None):
        b, s, d = x.shape
        keep = torch.ones(b, s, dtype=torch.bool, device=x.device) if keep is None else keep
        qkv = self.qkv(x)
        qkv = qkv.to(torch.promote_types(qkv.dtype, torch.float32))
        q, k, v = qkv.view(b, s, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind()
        rows = []
        for first in range(0, s, 8 * self.block):  # queries in blocks as well
            last = min(first + 8 * self.block, s)
            mine = q[:, :, first:last] * (d // self.heads) ** -0.5
            out, lse = torch.zeros_like(mine), torch.full_like(mine[..., :1], -torch.inf)
            for start in range(0, last, self.block):
                stop = min(start + self.block, last)
                seen = torch.ones(last - first, stop - start, dtype=torch.bool, device=x.device)
                seen = seen.tril(first - start) & keep[:, None, None, start:stop]
                scores = (mine @ k[:, :, start:stop].mT).where(seen, -torch.inf)
                own = scores.logsumexp(-1, keepdim=True)
                base = own.masked_fill(own == -torch.inf, 0.0)
                out, lse = joined(out, lse, (scores - base).exp() @ v[:, :, start:stop], own)
            rows.append(out)
        out = torch.cat(rows, 2).transpose(1, 2).reshape(b, s, d)
        return self.proj(out.to(x.dtype))
