"""A small vision transformer: patches, a class token, learned rows and columns."""

import torch
from torch import Tensor, nn


class PatchEmbed(nn.Module):
    """Images (B, C, height, width) to (B, patches, dim): square patches, row by row."""

    def __init__(self, channels: int, patch: int, dim: int) -> None:
        super().__init__()
        self.patch = patch
        self.proj = nn.Linear(channels * patch * patch, dim)

    def forward(self, images: Tensor) -> Tensor:
        B, C, height, width = images.shape
        p, h, w = self.patch, height // self.patch, width // self.patch
        x = images.reshape(B, C, h, p, w, p)
        x = x.permute(0, 2, 4, 1, 3, 5).reshape(B, h * w, C * p * p)
        return self.proj(x)


class Attention(nn.Module):
    """Every token attends to every token; query heads may share key heads, neighbours the same."""

    def __init__(self, dim: int, heads: int, kv_heads: int | None = None) -> None:
        super().__init__()
        self.heads, self.width = heads, dim // heads
        self.kv_heads = heads if kv_heads is None else kv_heads
        self.scale = self.width**-0.5
        if kv_heads is None:
            self.qkv = nn.Linear(dim, 3 * dim)
        else:
            self.q = nn.Linear(dim, dim)
            self.kv = nn.Linear(dim, 2 * kv_heads * self.width)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        B, N, D = x.shape
        own = self.kv_heads * self.width
        if hasattr(self, "qkv"):
            q, k, v = self.qkv(x).chunk(3, dim=-1)
        else:
            q, kv = self.q(x), self.kv(x).unflatten(-1, (2, own))
            k, v = kv.unbind(dim=-2)
        q = q.reshape(B, N, self.heads, self.width).transpose(1, 2)
        k = k.reshape(B, N, self.kv_heads, self.width).transpose(1, 2)
        v = v.reshape(B, N, self.kv_heads, self.width).transpose(1, 2)
        index = torch.arange(self.heads, device=x.device) * self.kv_heads // self.heads
        x = nn.functional.scaled_dot_product_attention(q, k[:, index], v[:, index])
        return self.proj(x.transpose(1, 2).reshape(B, N, D))


class Mlp(nn.Module):
    def __init__(self, dim: int, hidden: int, drop: float) -> None:
        super().__init__()
        self.fc1 = nn.Linear(dim, hidden)
        self.act = nn.GELU()
        self.fc2 = nn.Linear(hidden, dim)
        self.drop = nn.Dropout(drop)

    def forward(self, x: Tensor) -> Tensor:
        return self.drop(self.fc2(self.act(self.fc1(x))))


class Block(nn.Module):
    """Pre-norm, with a learned gain for each channel of what a branch adds (LayerScale)."""

    def __init__(self, dim: int, heads: int, drop: float, gain: float = 0.5) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.attn = Attention(dim, heads)
        self.gain1 = nn.Parameter(torch.full((dim,), gain))
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = Mlp(dim, 2 * dim, drop)
        self.gain2 = nn.Parameter(torch.full((dim,), gain))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.gain1 * self.attn(self.norm1(x))
        return x + self.gain2 * self.mlp(self.norm2(x))


class ViT(nn.Module):
    """Images to logits (B, classes), which are read from the class token."""

    def __init__(
        self,
        channels: int,
        height: int,
        width: int,
        patch: int,
        classes: int,
        dim: int,
        depth: int,
        heads: int,
        drop: float,
    ) -> None:
        super().__init__()
        self.patch_embed = PatchEmbed(channels, patch, dim)
        self.cls = nn.Parameter(torch.randn(1, 1, dim) / 50)
        self.rows = nn.Parameter(torch.randn(height // patch, dim) / 2)
        self.columns = nn.Parameter(torch.randn(width // patch, dim) / 2)
        self.blocks = nn.Sequential(*(Block(dim, heads, drop) for _ in range(depth)))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, classes)
        nn.init.normal_(self.head.weight, std=0.05)
        nn.init.zeros_(self.head.bias)

    def forward(self, images: Tensor) -> Tensor:
        x = self.patch_embed(images)
        places = self.rows[:, None] + self.columns[None, :]
        x = x + places.flatten(0, 1)
        cls = self.cls.expand(len(x), -1, -1)
        x = self.blocks(torch.cat([cls, x], dim=1))
        return self.head(self.norm(x[:, 0]))
