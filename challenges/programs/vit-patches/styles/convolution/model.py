"""A small vision transformer whose patches are cut by a convolution."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class PatchEmbed(nn.Module):
    def __init__(self, channels: int, patch: int, dim: int) -> None:
        super().__init__()
        self.patch = patch
        self.proj = nn.Linear(channels * patch * patch, dim)

    def forward(self, images: Tensor) -> Tensor:
        kernel = self.proj.weight.unflatten(1, (-1, self.patch, self.patch))
        grid = F.conv2d(images, kernel, self.proj.bias, stride=self.patch)
        return grid.flatten(2).transpose(1, 2)


class Attention(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.out = (nn.Linear(dim, dim) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (
            part(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in (self.q, self.k, self.v)
        )
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class Mlp(nn.Sequential):
    def __init__(self, dim: int, hidden: int, drop: float) -> None:
        super().__init__(
            nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, dim), nn.Dropout(drop)
        )


class Block(nn.Module):
    def __init__(self, dim: int, heads: int, drop: float) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn, self.mlp = Attention(dim, heads), Mlp(dim, 2 * dim, drop)
        self.gain1 = nn.Parameter(torch.ones(dim) / 2)
        self.gain2 = nn.Parameter(torch.ones(dim) / 2)

    def forward(self, x: Tensor) -> Tensor:
        for norm, branch, gain in (
            (self.norm1, self.attn, self.gain1),
            (self.norm2, self.mlp, self.gain2),
        ):
            x = torch.addcmul(x, gain, branch(norm(x)))
        return x


class ViT(nn.Module):
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
        self.blocks = nn.ModuleList([Block(dim, heads, drop) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, classes)
        nn.init.normal_(self.head.weight, std=0.05)
        nn.init.zeros_(self.head.bias)

    def forward(self, images: Tensor) -> Tensor:
        count = len(self.columns)
        patches = self.patch_embed(images)
        number = torch.arange(patches.size(1))
        patches = patches + self.rows[number // count] + self.columns[number % count]
        x = torch.cat([self.cls.repeat(len(images), 1, 1), patches], dim=1)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])
