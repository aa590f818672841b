# coding: utf-8
import copy
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


def clones(module, N):
    return nn.ModuleList([copy.deepcopy(module) for _ in range(N)])


class Attention(nn.Module):
    def __init__(self, d, h, dropout=0.1):
        super().__init__()
        self.h = h
        self.dk = d // h
        self.q = nn.Linear(d, d)
        self.k = nn.Linear(d, d)
        self.v = nn.Linear(d, d)
        self.o = nn.Linear(d, d)
        self.drop = nn.Dropout(dropout)

    def shape(self, x):
        return x.view(x.size(0), -1, self.h, self.dk).transpose(1, 2)

    def forward(self, query, key, value, mask=None):
        q = self.shape(self.q(query))
        k = self.shape(self.k(key))
        v = self.shape(self.k(value))
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.dk)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        p = self.drop(F.softmax(scores, dim=-1))
        x = (p @ v).transpose(1, 2).contiguous().view(query.size(0), -1, self.h * self.dk)
        return self.o(x)


class SublayerConnection(nn.Module):
    def __init__(self, size, dropout):
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, sublayer):
        return x + self.dropout(sublayer(self.norm(x)))


class Encoder(nn.Module):
    def __init__(self, d=32, h=4, ff=64, N=2, vocab=50):
        super().__init__()
        self.lut = nn.Embedding(vocab, d)
        self.pos = nn.Parameter(torch.randn(1, 64, d) * 0.02)
        self.attns = clones(Attention(d, h), N)
        self.ffs = clones(nn.Sequential(nn.Linear(d, ff), nn.ReLU(), nn.Linear(ff, d)), N)
        self.subs = clones(SublayerConnection(d, 0.1), 2 * N)
        self.norm = nn.LayerNorm(d)

    def forward(self, src, src_mask=None):
        x = self.lut(src) * math.sqrt(self.lut.embedding_dim) + self.pos[:, : src.size(1)]
        for i, (attn, ff) in enumerate(zip(self.attns, self.ffs)):
            x = self.subs[2 * i](x, lambda y: attn(y, y, y, src_mask))
            x = self.subs[2 * i + 1](x, ff)
        return self.norm(x)


if __name__ == "__main__":
    src = torch.randint(1, 50, (3, 12))
    src[0, 9:] = 0
    mask = (src != 0)[:, None, None, :]
    print(Encoder()(src, mask).shape)
