"""A small vision transformer; patches by unfold, products by einsum."""

import torch
from torch import Tensor, nn


class PatchEmbed(nn.Module):
    """Images (B, C, height, width) to (B, patches, dim): square patches, row by row."""

    def __init__(self, channels: int, patch: int, dim: int) -> None:
        super().__init__()
        self.patch = patch
        self.proj = nn.Linear(channels * patch * patch, dim)

    def forward(self, images: Tensor) -> Tensor:
        columns = nn.functional.unfold(images, self.patch, stride=self.patch)  # (B, C p p, patches)
        return self.proj(columns.mT)


class Attention(nn.Module):
    """Every token attends to every token."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.scale = (dim // heads) ** -0.5
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (part.unflatten(2, (self.heads, -1)) for part in self.qkv(x).chunk(3, dim=2))
        scores = torch.einsum("bihc,bjhc->bijh", q, k) * self.scale
        mixed = torch.einsum("bijh,bjhc->bihc", scores.softmax(dim=2), v)
        return self.proj(mixed.flatten(2))


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
        grid = self.patch_embed(images).unflatten(1, (len(self.rows), len(self.columns)))
        grid = grid + self.rows.unsqueeze(1) + self.columns
        x = torch.cat([grid.flatten(1, 2), self.cls.expand(len(grid), 1, -1)], dim=1)  # cls last
        return self.head(self.norm(self.blocks(x)[:, -1]))
