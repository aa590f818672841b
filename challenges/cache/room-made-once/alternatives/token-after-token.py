"""Reads each step one token at a time, so that no mask is needed."""

import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self, dim, heads, room):
        super().__init__()
        self.heads, self.room = heads, room
        self.proj_in = nn.Linear(dim, 3 * dim)
        self.proj_out = nn.Linear(dim, dim)
        self.reset()

    def reset(self):
        self.keys = self.values = None
        self.place = 0

    def reorder(self, parents):
        self.keys, self.values = self.keys[parents], self.values[parents]

    def forward(self, x):
        b, s, d = x.shape
        q, k, v = self.proj_in(x).view(b, s, 3, self.heads, -1).unbind(2)
        if self.keys is None:
            self.keys = k.new_zeros(b, self.room, *k.shape[2:])
            self.values = torch.zeros_like(self.keys)
        begin, self.place = self.place, self.place + s
        self.keys[:, begin : self.place], self.values[:, begin : self.place] = k, v
        mixed = torch.zeros_like(q)
        for now in range(s):
            past = slice(0, begin + now + 1)
            scores = torch.einsum("bhc,bkhc->bhk", q[:, now], self.keys[:, past])
            weights = (scores / q.shape[-1] ** 0.5).softmax(-1)
            mixed[:, now] = torch.einsum("bhk,bkhc->bhc", weights, self.values[:, past])
        return self.proj_out(mixed.reshape(b, s, d))
