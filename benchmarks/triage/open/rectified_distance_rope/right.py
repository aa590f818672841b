import torch
from torch import nn


def rotate(x, pos):
    """x (B, H, T, D), pos (B, T)"""
    half = x.size(-1) // 2
    w = 10000.0 ** (-torch.arange(half, device=x.device).float() / half)
    ang = (pos[..., None] * w)[:, None]
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * ang.cos() - b * ang.sin(), a * ang.sin() + b * ang.cos()], -1)


class LeakyDistanceAttention(nn.Module):
    """Rotary attention whose distances are counted back from the newest token and bounded by a window."""

    def __init__(self, dim=48, heads=4, window=6):
        super().__init__()
        self.heads, self.window = heads, window
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(dim, dim, bias=False) for _ in range(4))

    def forward(self, x, pos):
        B, T, C = x.shape
        q, k, v = (f(x).view(B, T, self.heads, -1).transpose(1, 2) for f in (self.q_proj, self.k_proj, self.v_proj))
        back = (pos[:, -1:] - pos).clamp(max=self.window)
        q, k = rotate(q, -back.float()), rotate(k, -back.float())
        score = q @ k.transpose(2, 3) / q.size(-1) ** 0.5
        return self.o_proj((score.softmax(-1) @ v).transpose(1, 2).reshape(B, T, C))


class ReRopeEncoder(nn.Module):
    def __init__(self, vocab=50, dim=48, layers=2):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.layers = nn.ModuleList(LeakyDistanceAttention(dim) for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(layers))
        self.ffs = nn.ModuleList(nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim)) for _ in range(layers))

    def forward(self, tokens):
        pos = torch.arange(tokens.shape[1], device=tokens.device).expand(tokens.shape)
        x = self.emb(tokens)
        for layer, norm, ff in zip(self.layers, self.norms, self.ffs):
            x = x + layer(norm(x), pos)
            x = x + ff(x)
        return x


if __name__ == "__main__":
    print(ReRopeEncoder()(torch.randint(0, 50, (1, 12))).shape)
