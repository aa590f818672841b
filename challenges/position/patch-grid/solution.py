"""What stands before the blocks of a ViT: photos become patches that know their row and column."""

import torch
from torch import Tensor, nn


def waves(places: Tensor, width: int) -> Tensor:
    """Sines, then cosines, of each place: (..., width)."""
    half = width // 2
    rates = 100.0 ** (-torch.arange(half, dtype=torch.float64) / half)
    angles = places.unsqueeze(-1) * rates
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


def grid_positions(rows: int, cols: int, width: int) -> Tensor:
    """(rows * cols, width): half of the columns for the row, half for the column."""
    y, x = torch.meshgrid(torch.arange(rows), torch.arange(cols), indexing="ij")
    return torch.cat([waves(y, width // 2), waves(x, width // 2)], dim=-1).flatten(0, 1)


class PatchTokens(nn.Module):
    mean: Tensor
    std: Tensor

    def __init__(self, patch: int, dim: int) -> None:
        super().__init__()
        self.patch, self.dim = patch, dim
        self.proj = nn.Linear(3 * patch * patch, dim)
        self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1))
        self.register_buffer("std", torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1))

    def patchify(self, photos: Tensor) -> Tensor:
        """(B, 3, height, width) -> (B, rows, cols, patch * patch * 3)"""
        b, c, height, width = photos.shape
        p = self.patch
        cells = photos.reshape(b, c, height // p, p, width // p, p)
        return cells.permute(0, 2, 4, 3, 5, 1).flatten(3)

    def forward(self, photos: Tensor) -> Tensor:
        patches = self.patchify((photos - self.mean) / self.std)
        rows, cols = patches.shape[1:3]
        tokens = self.proj(patches.flatten(1, 2))
        tokens += grid_positions(rows, cols, self.dim).to(tokens)
        return tokens
