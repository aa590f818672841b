"""Attention as in Transformer-XL, in an encoder: contents, and how far apart they are."""

import torch
import torch.nn.functional as F
from torch import nn


def sinusoids(distance, width):
    """(R,) -> (R, width): sines, then cosines."""
    inv_freq = 1 / 10000 ** (torch.arange(0, width, 2.0) / width)
    angle = distance[:, None] * inv_freq.to(distance)
    return torch.cat([angle.sin(), angle.cos()], dim=-1)


def rel_shift(x):
    """(b, n, S, 2S - 1), a column per distance -> (b, n, S, S), a column per key."""
    b, n, i, r = x.shape
    x = F.pad(x, (1, 0)).view(b, n, r + 1, i)
    x = x[:, :, 1:].reshape(b, n, i, r)
    return x[..., :i]


class RelAttention(nn.Module):
    def __init__(self, d_model, n_head):
        super().__init__()
        self.n_head, self.d_head = n_head, d_model // n_head
        self.qkv_net = nn.Linear(d_model, 3 * d_model, bias=False)
        self.r_net = nn.Linear(d_model, d_model, bias=False)
        self.o_net = nn.Linear(d_model, d_model, bias=False)
        self.r_w_bias = nn.Parameter(torch.zeros(n_head, self.d_head))  # for contents
        self.r_r_bias = nn.Parameter(torch.zeros(n_head, self.d_head))  # for distances

    def forward(self, x, keep=None):
        bsz, s, d_model = x.shape
        w_q, w_k, w_v = self.qkv_net(x).view(bsz, s, 3, self.n_head, self.d_head).unbind(2)
        distance = torch.arange(s - 1, -s, -1, device=x.device, dtype=torch.float32)
        r_k = self.r_net(sinusoids(distance, d_model).to(x)).view(-1, self.n_head, self.d_head)

        AC = torch.einsum("bind,bjnd->bnij", w_q + self.r_w_bias, w_k)
        BD = torch.einsum("bind,rnd->bnir", w_q + self.r_r_bias, r_k)
        score = (AC + rel_shift(BD)) / self.d_head**0.5
        if keep is not None:
            score = score.masked_fill(~keep[:, None, None, :], float("-inf"))
        prob = score.softmax(dim=-1)
        vec = torch.einsum("bnij,bjnd->bind", prob, w_v)
        return self.o_net(vec.reshape(bsz, s, d_model))
