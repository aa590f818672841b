"""Norms by F.rms_norm, an additive mask, the sink in front."""

import torch
import torch.nn.functional as F
from torch import nn


class BoundedAttention(nn.Module):
    def __init__(self, dim, heads, dropout, cap):
        super().__init__()
        self.heads = heads
        self.p, self.cap = dropout, cap
        self.to_q = nn.Linear(dim, dim, bias=False)
        self.to_k = nn.Linear(dim, dim, bias=False)
        self.to_v = nn.Linear(dim, dim, bias=False)
        self.to_out = nn.Linear(dim, dim, bias=False)
        hd = dim // heads
        self.q_gain, self.k_gain = (nn.Parameter(torch.ones(hd)) for _ in range(2))
        self.sink = nn.Parameter(torch.zeros(heads))

    def _norm(self, t, gain):
        wide = t if t.dtype == torch.float64 else t.float()
        return F.rms_norm(wide, gain.shape, eps=1e-6).type_as(t) * gain

    def forward(self, x, mask=None):
        b, s, _ = x.shape
        q, k, v = (
            layer(x).reshape(b, s, self.heads, -1).permute(0, 2, 1, 3)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        q, k = self._norm(q, self.q_gain), self._norm(k, self.k_gain)
        logits = torch.matmul(q, k.transpose(2, 3)) / q.size(-1) ** 0.5
        logits = torch.tanh(logits / self.cap) * self.cap
        if mask is not None:
            bias = torch.zeros_like(mask, dtype=x.dtype).masked_fill(mask.logical_not(), -torch.inf)
            logits = logits + bias[:, None]
        sink = self.sink.expand(b, s, -1).transpose(1, 2)[..., None]
        logits = torch.cat((sink, logits), -1)
        weights = F.softmax(logits, dim=-1)[..., 1:]
        weights = F.dropout(weights, p=self.p, training=self.training)
        return self.to_out(torch.matmul(weights, v).permute(0, 2, 1, 3).flatten(2))
