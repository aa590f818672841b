import torch
import torch.nn as nn
import torch.nn.functional as F


def sinusoids(length, channels, max_timescale=10000):
    inv = torch.exp(-torch.log(torch.tensor(float(max_timescale))) / (channels // 2 - 1) * torch.arange(channels // 2))
    t = torch.arange(length)[:, None] * inv[None]
    return torch.cat([t.sin(), t.cos()], dim=1)


class EncoderLayer(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.q = nn.Linear(d, d)
        self.k = nn.Linear(d, d, bias=False)
        self.v = nn.Linear(d, d)
        self.out = nn.Linear(d, d)
        self.ln1 = nn.LayerNorm(d)
        self.fc = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))

    def forward(self, x, mask):
        h = self.ln1(x)
        q, k, v = (f(h).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f in (self.q, self.k, self.v))
        scores = q @ k.transpose(2, 3) * q.shape[-1] ** -0.5
        scores = scores.masked_fill(mask[:, None], torch.finfo(scores.dtype).min)
        x = x + self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
        return x + self.fc(x)


class SpeechEncoder(nn.Module):
    """Mel frames to tokens; causal in blocks of 4, padding hidden."""

    def __init__(self, mels=20, d=40, heads=4, layers=2, block=4, max_len=100):
        super().__init__()
        self.block = block
        self.conv = nn.Conv1d(mels, d, 3, padding=1)
        self.register_buffer("pos", sinusoids(max_len, d))
        self.layers = nn.ModuleList([EncoderLayer(d, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(d)

    def build_mask(self, valid):
        n = valid.shape[1]
        group = torch.arange(n, device=valid.device) // self.block
        mask = (group[:, None] >= group[None, :]).float()
        mask = mask[None].repeat(valid.shape[0], 1, 1)
        mask += valid[:, None, :].float() - 1
        return mask < 0.5

    def forward(self, mel, valid):
        x = F.gelu(self.conv(mel.transpose(1, 2) * valid[:, None])).transpose(1, 2)
        x = x + self.pos[: x.shape[1]]
        mask = self.build_mask(valid)
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x) * valid[..., None]


if __name__ == "__main__":
    enc = SpeechEncoder()
    valid = torch.ones(3, 30, dtype=torch.bool)
    valid[2, :9] = False
    print(enc(torch.randn(3, 30, 20), valid).shape)
