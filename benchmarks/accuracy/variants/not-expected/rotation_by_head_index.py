"""Rotary angles for (B, S, H, hd) data taken along dim -2: the head's number is the position.

Atlas: rope-wrong-axis
Why not: a table that is as long as there are heads is how slopes of heads look as well.
"""

import torch
from torch import nn

DIMS, B, S, H, D = "x: B S D", 5, 11, 4, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(D, D) for _ in range(4))

    def turn(self, t):
        places = torch.arange(t.shape[-2])[:, None]  # WRONG
        # RIGHT: places = torch.arange(t.shape[1])[:, None, None]
        angle = places * 10000 ** (-torch.arange(0, 6, 2) / 6)
        cos, sin = angle.cos().repeat_interleave(2, -1), angle.sin().repeat_interleave(2, -1)
        other = torch.stack([-t[..., 1::2], t[..., 0::2]], dim=-1).flatten(-2)
        return t * cos + other * sin

    def forward(self, x):
        q, k, v = (p(x).unflatten(-1, (H, -1)) for p in (self.q, self.k, self.v))
        scores = torch.einsum("bqhd,bkhd->bhqk", self.turn(q), self.turn(k)) / 6**0.5
        return self.out(torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), v).flatten(2))
