import torch
from torch import nn, einsum
from einops import rearrange, repeat


def rotate_half(x):
    x = rearrange(x, '... (d r) -> ... d r', r=2)
    x1, x2 = x.unbind(dim=-1)
    return torch.stack((-x2, x1), dim=-1).flatten(-2)


def apply_rotary_emb(freqs, t):
    return (t * freqs.cos()) + (rotate_half(t) * freqs.sin())


class RotaryEmbedding(nn.Module):
    def __init__(self, dim, theta=10000):
        super().__init__()
        self.register_buffer('freqs', 1. / (theta ** (torch.arange(0, dim, 2)[:(dim // 2)].float() / dim)))

    def rotate_queries_or_keys(self, t):
        seq = torch.arange(t.shape[-2], device=t.device).type_as(self.freqs)
        freqs = einsum('i, j -> i j', seq, self.freqs)
        return apply_rotary_emb(repeat(freqs, 'n d -> n (d r)', r=2), t)


class CausalRotaryAttention(nn.Module):
    def __init__(self, dim=64, heads=4, dropout=0.):
        super().__init__()
        self.heads = heads
        self.rotary = RotaryEmbedding(dim // heads)
        self.norm = nn.LayerNorm(dim)
        self.to_qkv = nn.Linear(dim, dim * 3, bias=False)
        self.to_out = nn.Linear(dim, dim, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        n = x.shape[1]
        q, k, v = (rearrange(t, 'b n (h d) -> b h n d', h=self.heads) for t in self.to_qkv(self.norm(x)).chunk(3, dim=-1))
        q = self.rotary.rotate_queries_or_keys(q) * q.shape[-1] ** -0.5
        k = self.rotary.rotate_queries_or_keys(k)
        sim = einsum('b h i d, b h j d -> b h i j', q, k)
        causal_mask = torch.ones((n, n), dtype=torch.bool, device=x.device).triu(1)
        sim = sim.masked_fill(causal_mask, -torch.finfo(sim.dtype).max)
        attn = self.dropout(sim.softmax(dim=-1))
        out = einsum('b h i j, b h j d -> b h i d', attn, v)
        return self.to_out(rearrange(out, 'b h n d -> b n (h d)'))


if __name__ == '__main__':
    attention = CausalRotaryAttention()
    print(attention(torch.randn(2, 19, 64)).shape)
