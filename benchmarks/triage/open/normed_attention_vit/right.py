import torch
import torch.nn.functional as F
from einops import rearrange
from torch import nn


class LayerNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(dim))
        self.register_buffer("beta", torch.zeros(dim))

    def forward(self, x):
        return F.layer_norm(x, x.shape[-1:], self.gamma, self.beta)


class RMSNorm(nn.Module):
    """Per-head norm of queries and keys (ViT-22B)."""

    def __init__(self, heads, dim):
        super().__init__()
        self.scale = dim**0.5
        self.gamma = nn.Parameter(torch.ones(heads, 1, dim))

    def forward(self, x):
        return F.normalize(x, dim=-1) * self.scale * self.gamma


class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=16):
        super().__init__()
        inner = heads * dim_head
        self.heads = heads
        self.norm = LayerNorm(dim)
        self.q_norm = RMSNorm(heads, dim_head)
        self.k_norm = RMSNorm(heads, dim_head)
        self.to_qkv = nn.Linear(dim, inner * 3, bias=False)
        self.to_out = nn.Linear(inner, dim, bias=False)

    def forward(self, x):
        qkv = self.to_qkv(self.norm(x)).chunk(3, dim=-1)
        q, k, v = (rearrange(t, "b n (h d) -> b h n d", h=self.heads) for t in qkv)
        q, k = self.q_norm(q), self.k_norm(k)
        out = F.scaled_dot_product_attention(q, k, v)
        return self.to_out(rearrange(out, "b h n d -> b n (h d)"))


class ViT(nn.Module):
    def __init__(self, image=32, patch=8, dim=48, depth=2, classes=7):
        super().__init__()
        self.patch = patch
        self.embed = nn.Linear(3 * patch * patch, dim)
        self.pos = nn.Parameter(torch.randn((image // patch) ** 2, dim) * 0.02)
        self.blocks = nn.ModuleList([Attention(dim) for _ in range(depth)])
        self.mlps = nn.ModuleList(
            [nn.Sequential(LayerNorm(dim), nn.Linear(dim, 96), nn.GELU(), nn.Linear(96, dim)) for _ in range(depth)]
        )
        self.head = nn.Sequential(LayerNorm(dim), nn.Linear(dim, classes))

    def forward(self, img):
        x = rearrange(img, "b c (h p) (w q) -> b (h w) (p q c)", p=self.patch, q=self.patch)
        x = self.embed(x) + self.pos
        for attn, mlp in zip(self.blocks, self.mlps):
            x = x + attn(x)
            x = x + mlp(x)
        return self.head(x.mean(1))
