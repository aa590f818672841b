"""Encoder layer, time-first like the original."""
import math

import torch
from torch import nn


class MultiHeadedAttention(nn.Module):
    def __init__(self, n_head, d_model, p=0.1):
        super().__init__()
        if d_model % n_head:
            raise ValueError("d_model must be divisible by n_head")
        self.n_head, self.d_k = n_head, d_model // n_head
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.fc = nn.Linear(d_model, d_model)
        self.dropout = nn.Dropout(p)

    def split(self, t):
        bsz, n, _ = t.size()
        t = t.view(bsz, n, self.n_head, self.d_k).permute(0, 2, 1, 3)
        return t.contiguous().view(bsz * self.n_head, n, self.d_k)

    def forward(self, query, key, value):
        bsz, n_q, _ = query.size()
        q, k, v = self.split(self.w_q(query)), self.split(self.w_k(key)), self.split(self.w_v(value))
        energy = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(self.d_k)
        attention = self.dropout(torch.softmax(energy, dim=-1))
        out = torch.bmm(attention, v)
        out = out.view(self.n_head, bsz, n_q, self.d_k)
        out = out.permute(1, 2, 0, 3).contiguous().view(bsz, n_q, self.n_head * self.d_k)
        return self.fc(out)


class RankerLayer(nn.Module):
    def __init__(self, n_head=4, d_model=64, d_ff=128):
        super().__init__()
        self.attn = MultiHeadedAttention(n_head, d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))
        self.ln1, self.ln2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, x):
        h = self.ln1(x)
        x = x + self.attn(h, h, h)
        return x + self.ff(self.ln2(x))


if __name__ == "__main__":
    layer = RankerLayer()
    documents = torch.randn(6, 11, 64)
    print(layer(documents).shape)
