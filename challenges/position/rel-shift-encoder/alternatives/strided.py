"""The shift as a view with other strides; the distances as a bias of the fused kernel."""

import torch
import torch.nn.functional as F
from torch import nn


class RelAttention(nn.Module):
    def __init__(self, d_model, n_head):
        super().__init__()
        self.n = n_head
        self.hd = d_model // n_head
        for name, rows in (("qkv_net", 3 * d_model), ("r_net", d_model), ("o_net", d_model)):
            self.add_module(name, nn.Linear(d_model, rows, bias=False))
        self.r_w_bias = nn.Parameter(torch.empty(n_head, self.hd).normal_(std=0.02))
        self.r_r_bias = nn.Parameter(torch.empty(n_head, self.hd).normal_(std=0.02))

    def forward(self, x, keep=None):
        b, s, d = x.shape
        q, k, v = self.qkv_net(x).view(b, s, 3, self.n, self.hd).permute(2, 0, 3, 1, 4)
        w = 10000.0 ** (-torch.arange(0, d, 2, device=x.device).double() / d)
        angle = torch.arange(s - 1, -s, -1, device=x.device).outer(w)
        table = torch.cat((angle.sin(), angle.cos()), -1).to(x.dtype)
        r = self.r_net(table).view(2 * s - 1, self.n, self.hd).transpose(0, 1)
        wide = ((q + self.r_r_bias.unsqueeze(1)) @ r.mT).contiguous()
        outer, row = wide.stride()[:2], wide.stride(2)
        bias = wide.as_strided((b, self.n, s, s), (*outer, row - 1, 1), s - 1)
        bias = bias / self.hd**0.5
        if keep is not None:
            bias = bias.masked_fill(keep.logical_not().view(b, 1, 1, s), float("-inf"))
        u = q + self.r_w_bias.unsqueeze(1)
        y = F.scaled_dot_product_attention(u, k, v, attn_mask=bias)
        return self.o_net(y.transpose(1, 2).reshape(b, s, d))
