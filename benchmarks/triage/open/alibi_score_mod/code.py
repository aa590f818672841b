import torch
import torch.nn as nn


def alibi_slopes(n_heads):
    start = 2 ** (-8 / n_heads)
    return torch.tensor([start ** (i + 1) for i in range(n_heads)])


class AlibiAttention(nn.Module):
    def __init__(self, emb=64, heads=8):
        super().__init__()
        self.emb, self.heads = emb, heads
        self.tokeys = nn.Linear(emb, emb, bias=False)
        self.toqueries = nn.Linear(emb, emb, bias=False)
        self.tovalues = nn.Linear(emb, emb, bias=False)
        self.unify = nn.Linear(emb, emb)
        self.register_buffer("slopes", alibi_slopes(heads)[:, None, None], persistent=False)

    def forward(self, x):
        b, t, e = x.size()
        h, s = self.heads, self.emb // self.heads

        keys = self.tokeys(x).view(b, t, h, s).transpose(1, 2).reshape(b * h, t, s)
        queries = self.toqueries(x).view(b, t, h, s).transpose(1, 2).reshape(b * h, t, s)
        values = self.tovalues(x).view(b, t, h, s).transpose(1, 2).reshape(b * h, t, s)

        dot = torch.bmm(queries / s ** 0.5, keys.transpose(1, 2)).view(b, h, t, t)
        q_idx = torch.arange(t, device=x.device)[:, None]
        kv_idx = torch.arange(t, device=x.device)[None, :]
        dot = dot + self.slopes * (q_idx - kv_idx)
        dot = torch.where(q_idx >= kv_idx, dot, -float("inf"))

        out = torch.bmm(torch.softmax(dot, dim=-1).view(b * h, t, t), values).view(b, h, t, s)
        return self.unify(out.transpose(1, 2).reshape(b, t, e))


class AlibiTransformer(nn.Module):
    def __init__(self, num_tokens=60, emb=64, heads=8, depth=2):
        super().__init__()
        self.token_embedding = nn.Embedding(num_tokens, emb)
        blocks = []
        for _ in range(depth):
            blocks.append(nn.ModuleDict({
                "norm1": nn.LayerNorm(emb), "attention": AlibiAttention(emb, heads),
                "norm2": nn.LayerNorm(emb),
                "ff": nn.Sequential(nn.Linear(emb, 4 * emb), nn.ReLU(), nn.Linear(4 * emb, emb)),
            }))
        self.blocks = nn.ModuleList(blocks)
        self.toprobs = nn.Linear(emb, num_tokens)

    def forward(self, x):
        x = self.token_embedding(x)
        for block in self.blocks:
            x = x + block["attention"](block["norm1"](x))
            x = x + block["ff"](block["norm2"](x))
        return torch.log_softmax(self.toprobs(x), dim=2)
