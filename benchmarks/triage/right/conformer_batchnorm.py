"""Tell four chirps apart with a small conformer: convolution modules with BatchNorm, recordings of unequal length."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

FREQS, LONGEST = 16, 40


def recordings(n, g):
    """Spectrograms (n, time, frequency), lengths and labels; the label is the way the tone moves."""
    labels = torch.randint(0, 4, (n,), generator=g)
    lengths = torch.randint(24, LONGEST + 1, (n,), generator=g)
    spec = 0.3 * torch.randn(n, LONGEST, FREQS, generator=g).abs()
    for i in range(n):
        t = torch.linspace(0, 1, int(lengths[i]))
        path = [t, 1 - t, (2 * t - 1).abs(), 1 - (2 * t - 1).abs()][int(labels[i])]
        centre = 2 + path * (FREQS - 5) + torch.rand(1, generator=g)
        spec[i, : len(t)] += torch.exp(-0.5 * (torch.arange(FREQS)[None] - centre[:, None]) ** 2)
        spec[i, len(t):] = 0.0
    return spec, lengths, labels


class ConvModule(nn.Module):
    def __init__(self, dim, kernel=7, dropout=0.1):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.pointwise1 = nn.Conv1d(dim, 2 * dim, 1)
        self.depthwise = nn.Conv1d(dim, dim, kernel, padding=kernel // 2, groups=dim, bias=False)
        self.bn = nn.BatchNorm1d(dim)
        self.pointwise2 = nn.Conv1d(dim, dim, 1)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, pad):
        h = F.glu(self.pointwise1(self.norm(x).transpose(1, 2)), dim=1)
        h = h.masked_fill(pad.unsqueeze(1), 0.0)
        h = self.pointwise2(F.silu(self.bn(self.depthwise(h))))
        return self.dropout(h.transpose(1, 2))


class ConformerBlock(nn.Module):
    def __init__(self, dim, heads, dropout=0.1):
        super().__init__()
        def ff():
            return nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 4 * dim), nn.SiLU(), nn.Dropout(dropout),
                                 nn.Linear(4 * dim, dim), nn.Dropout(dropout))
        self.ff1, self.ff2 = ff(), ff()
        self.attn_norm = nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, heads, dropout=dropout, batch_first=True)
        self.conv = ConvModule(dim, dropout=dropout)
        self.norm = nn.LayerNorm(dim)

    def forward(self, x, pad):
        x = x + 0.5 * self.ff1(x)
        h = self.attn_norm(x)
        x = x + self.attn(h, h, h, key_padding_mask=pad, need_weights=False)[0]
        x = x + self.conv(x, pad)
        x = x + 0.5 * self.ff2(x)
        return self.norm(x)


class Net(nn.Module):
    def __init__(self, dim=48, heads=4, layers=2):
        super().__init__()
        self.inp = nn.Linear(FREQS, dim)
        position = torch.arange(LONGEST)[:, None] * torch.exp(-math.log(1e4) * torch.arange(0, dim, 2) / dim)
        self.register_buffer("pe", torch.stack([position.sin(), position.cos()], dim=-1).flatten(1))
        self.blocks = nn.ModuleList(ConformerBlock(dim, heads) for _ in range(layers))
        self.out = nn.Linear(dim, 4)

    def forward(self, spec, lengths):
        pad = torch.arange(spec.size(1), device=spec.device)[None] >= lengths[:, None]
        x = self.inp(spec) + self.pe[: spec.size(1)]
        for block in self.blocks:
            x = block(x, pad)
        x = x.masked_fill(pad.unsqueeze(-1), 0.0).sum(1) / lengths[:, None]
        return self.out(x)


torch.manual_seed(0)
g_train, g_valid = torch.Generator().manual_seed(1), torch.Generator().manual_seed(2)
valid = recordings(200, g_valid)
net = Net()
opt = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=1e-2)
for step in range(60):
    net.train()
    spec, lengths, labels = recordings(32, g_train)
    loss = F.cross_entropy(net(spec, lengths), labels)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 5.0)
    opt.step()
    if step % 10 == 9:
        net.eval()
        with torch.no_grad():
            hits = (net(valid[0], valid[1]).argmax(-1) == valid[2]).float().mean()
        print(f"step {step + 1} loss {loss.item():.3f} valid {hits:.3f}")
