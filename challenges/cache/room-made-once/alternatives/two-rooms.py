"""Keeps keys and values apart, and copies with index_copy."""

import torch
import torch.nn.functional as F
from torch import nn


class Decoder(nn.Module):
    def __init__(self, dim, heads, room):
        super().__init__()
        self.heads, self.room = heads, room
        self.proj_in = nn.Linear(dim, 3 * dim)
        self.proj_out = nn.Linear(dim, dim)
        self.reset()

    def reset(self):
        self.kept, self.length = {}, 0

    def reorder(self, parents):
        self.kept = {name: t.index_select(0, parents) for name, t in self.kept.items()}

    def forward(self, x):
        b, s, d = x.shape
        q, k, v = (
            t.view(b, s, self.heads, -1).transpose(1, 2) for t in self.proj_in(x).chunk(3, -1)
        )
        where = torch.arange(self.length, self.length + s, device=x.device)
        for name, t in (("k", k), ("v", v)):
            if name not in self.kept:
                self.kept[name] = t.new_zeros(b, self.heads, self.room, t.shape[-1])
            self.kept[name].index_copy_(2, where, t)
        self.length += s
        seen = torch.arange(self.room, device=x.device) <= where[:, None]
        y = F.scaled_dot_product_attention(q, self.kept["k"], self.kept["v"], attn_mask=seen)
        return self.proj_out(y.transpose(1, 2).reshape(b, s, d))
