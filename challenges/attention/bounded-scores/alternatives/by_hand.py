"""The softmax with its sink written out, heads in front."""

import torch
from torch import nn


class Norm(nn.Module):
    def forward(self, t, gain):
        at_least = torch.float64 if t.dtype == torch.float64 else torch.float32
        y = t.to(at_least)
        y = y / (y.pow(2).mean(dim=-1, keepdim=True) + 1e-6).sqrt()
        return gain * y.to(t.dtype)


class BoundedAttention(nn.Module):
    def __init__(self, dim, heads, dropout, cap):
        super().__init__()
        self.h, self.hd = heads, dim // heads
        self.cap = cap
        for name in ("to_q", "to_k", "to_v", "to_out"):
            setattr(self, name, nn.Linear(dim, dim, bias=False))
        self.q_gain = nn.Parameter(torch.ones(self.hd))
        self.k_gain = nn.Parameter(torch.ones(self.hd))
        self.sink = nn.Parameter(torch.zeros(heads))
        self.norm = Norm()
        self.drop = nn.Dropout(dropout)

    def split(self, t):
        return t.view(t.size(0), t.size(1), self.h, self.hd).transpose(1, 2)

    def forward(self, x, mask=None):
        q = self.norm(self.split(self.to_q(x)), self.q_gain)
        k = self.norm(self.split(self.to_k(x)), self.k_gain)
        v = self.split(self.to_v(x))
        s = (q @ k.mT).div(self.hd**0.5 * self.cap).tanh().mul(self.cap)
        sink = self.sink.view(-1, 1, 1)
        if mask is not None:
            s = s.masked_fill(mask.unsqueeze(1).logical_not(), -torch.inf)
        top = torch.maximum(s.amax(-1, keepdim=True), sink).detach()
        e = (s - top).exp()
        w = e / (e.sum(-1, keepdim=True) + (sink - top).exp())
        y = self.drop(w) @ v
        return self.to_out(y.transpose(1, 2).reshape(x.shape))
