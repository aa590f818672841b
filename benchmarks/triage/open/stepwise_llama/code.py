from __future__ import annotations

import torch
import torch.nn as nn
import torch.nn.functional as F


def rope(x: torch.Tensor, start: int) -> torch.Tensor:
    half = x.shape[-1] // 2
    inv_freq = 1.0 / (10_000 ** (torch.arange(half, device=x.device) / half))
    t = torch.arange(start, start + x.shape[-2], device=x.device)
    angles = torch.outer(t, inv_freq)
    cos, sin = angles.cos(), angles.sin()
    left, right = x[..., :half], x[..., half:]
    return torch.cat((left * cos - right * sin, right * cos + left * sin), dim=-1)


class Attention(nn.Module):
    def __init__(self, hidden: int, heads: int):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(hidden, 3 * hidden, bias=False)
        self.o = nn.Linear(hidden, hidden, bias=False)

    def forward(self, x, past=None):
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        q, k = rope(q, 0), rope(k, 0)
        if past is not None:
            k, v = torch.cat((past[0], k), 2), torch.cat((past[1], v), 2)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        return self.o(out.transpose(1, 2).reshape(b, t, c)), (k, v)


class StepwiseLlama(nn.Module):
    def __init__(self, vocab: int = 100, hidden: int = 64, heads: int = 4, depth: int = 2):
        super().__init__()
        self.embed_tokens = nn.Embedding(vocab, hidden)
        self.attn = nn.ModuleList(Attention(hidden, heads) for _ in range(depth))
        self.up = nn.ModuleList(nn.Linear(hidden, 4 * hidden) for _ in range(depth))
        self.down = nn.ModuleList(nn.Linear(4 * hidden, hidden) for _ in range(depth))
        self.n1 = nn.ModuleList(nn.RMSNorm(hidden) for _ in range(depth))
        self.n2 = nn.ModuleList(nn.RMSNorm(hidden) for _ in range(depth))
        self.lm_head = nn.Linear(hidden, vocab, bias=False)

    def forward(self, input_ids, past_key_values=None):
        h = self.embed_tokens(input_ids)
        kept = []
        for i, attn in enumerate(self.attn):
            out, layer_past = attn(self.n1[i](h), None if past_key_values is None else past_key_values[i])
            kept.append(layer_past)
            h = h + out
            h = h + self.down[i](F.silu(self.up[i](self.n2[i](h))))
        return self.lm_head(h), kept

    @torch.no_grad()
    def generate(self, ids, steps=12):
        logits, past = self(ids)
        for _ in range(steps):
            ids = torch.cat((ids, logits[:, -1:].argmax(-1)), 1)
            logits, past = self(ids[:, -1:], past)
        return ids


if __name__ == "__main__":
    torch.manual_seed(3)
    print(StepwiseLlama().generate(torch.randint(0, 100, (2, 6))))
