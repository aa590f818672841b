"""Lays the members of a group along the queries, so that plain matrix products do."""

from torch import nn


class GroupedReader(nn.Module):
    def __init__(self, dim, memory_dim, heads, kv_heads):
        super().__init__()
        self.groups, self.hd = kv_heads, dim // heads
        self.ask = nn.Linear(dim, dim)
        self.keys = nn.Linear(memory_dim, kv_heads * self.hd)
        self.values = nn.Linear(memory_dim, kv_heads * self.hd)
        self.tell = nn.Linear(dim, dim)

    def forward(self, x, memory, keep=None):
        b, n, d = x.shape
        q = self.ask(x).view(b, n, self.groups, -1, self.hd).permute(0, 2, 3, 1, 4)
        q = q.reshape(b, self.groups, -1, self.hd)
        k = self.keys(memory).view(b, -1, self.groups, self.hd).permute(0, 2, 3, 1)
        v = self.values(memory).view(b, -1, self.groups, self.hd).transpose(1, 2)
        scores = (q @ k) * self.hd**-0.5
        if keep is not None:
            scores = scores.masked_fill(keep.logical_not()[:, None, None], float("-inf"))
        out = scores.softmax(-1) @ v
        out = out.view(b, self.groups, -1, n, self.hd).permute(0, 3, 1, 2, 4)
        return self.tell(out.reshape(b, n, d))
