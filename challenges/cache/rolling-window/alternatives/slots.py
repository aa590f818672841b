"""A ring: the token at place p is kept in slot p % window. Tokens of a piece go through it one by one."""

import torch
from torch import nn


class RollingAttention(nn.Module):
    def __init__(self, dim, heads, window):
        super().__init__()
        self.heads, self.window, self.hd = heads, window, dim // heads
        self.to_qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.to_out = nn.Linear(dim, dim)

    def turned(self, t, place):
        rates = 10000.0 ** (-torch.arange(0, self.hd, 2, device=t.device) / self.hd)
        swap = torch.stack((-t[..., 1::2], t[..., ::2]), -1).flatten(-2)
        angle = (place * rates).repeat_interleave(2)
        return t * angle.cos().to(t) + swap * angle.sin().to(t)

    def forward(self, x, cache=None):
        b, s, d = x.shape
        read, slots = (0, []) if cache is None else cache
        slots, out = list(slots), []
        for t in range(s):
            q, k, v = self.to_qkv(x[:, t]).view(b, 3, self.heads, self.hd).unbind(1)
            q, k = self.turned(q, read), self.turned(k, read)
            if len(slots) < self.window:
                slots.append((k, v))
            else:
                slots[read % self.window] = (k, v)
            read += 1
            keys, values = (torch.stack(part, dim=2) for part in zip(*slots))
            weights = (q[:, :, None] @ keys.mT / self.hd**0.5).softmax(-1)
            out.append((weights @ values).reshape(b, 1, d))
        return self.to_out(torch.cat(out, 1)), (read, slots)
