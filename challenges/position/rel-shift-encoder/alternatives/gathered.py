"""Each pair looks its distance up in a table; no shift at all."""

import math

import torch
from torch import Tensor, nn


class RelAttention(nn.Module):
    def __init__(self, d_model: int, n_head: int) -> None:
        super().__init__()
        self.h = n_head
        self.qkv_net = nn.Linear(d_model, 3 * d_model, bias=False)
        self.r_net = nn.Linear(d_model, d_model, bias=False)
        self.o_net = nn.Linear(d_model, d_model, bias=False)
        self.r_w_bias = nn.Parameter(torch.randn(n_head, d_model // n_head))
        self.r_r_bias = nn.Parameter(torch.randn(n_head, d_model // n_head))

    def heads(self, t: Tensor) -> Tensor:
        return t.unflatten(-1, (self.h, -1)).transpose(-2, -3)

    def forward(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        s, d = x.shape[1:]
        q, k, v = map(self.heads, self.qkv_net(x).chunk(3, -1))
        at = torch.arange(s, device=x.device)
        far = torch.arange(1 - s, s, device=x.device, dtype=torch.float64)[:, None]
        rate = torch.exp(torch.arange(0, d, 2, device=x.device) * (-math.log(10000.0) / d))
        table = torch.cat([torch.sin(far * rate), torch.cos(far * rate)], 1).to(x.dtype)
        r = self.heads(self.r_net(table))[:, at[:, None] - at + s - 1]
        by_content = (q + self.r_w_bias[:, None]) @ k.mT
        by_distance = torch.einsum("bhqc,hqkc->bhqk", q + self.r_r_bias[:, None], r)
        scores = (by_content + by_distance) * (d // self.h) ** -0.5
        if keep is not None:
            scores = torch.where(keep[:, None, None], scores, -torch.inf)
        y = scores.softmax(-1) @ v
        return self.o_net(y.transpose(1, 2).flatten(2))
