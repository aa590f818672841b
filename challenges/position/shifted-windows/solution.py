"""Swin's attention: within windows of pixels, which are shifted in every second layer."""

import torch
from torch import Tensor, nn


def window_partition(x: Tensor, w: int) -> Tensor:
    """(B, R, C, D) -> (B * windows, w * w, D), windows of an image one after the other."""
    B, R, C, D = x.shape
    x = x.view(B, R // w, w, C // w, w, D)
    return x.transpose(2, 3).reshape(-1, w * w, D)


def window_reverse(windows: Tensor, w: int, R: int, C: int) -> Tensor:
    """The way back, to (B, R, C, D)."""
    x = windows.view(-1, R // w, C // w, w, w, windows.shape[-1])
    return x.transpose(2, 3).reshape(-1, R, C, windows.shape[-1])


class ShiftedWindowAttention(nn.Module):
    relative_position_index: Tensor

    def __init__(self, dim: int, num_heads: int, window_size: int, shift_size: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.window_size = window_size
        self.shift_size = shift_size
        self.scale = (dim // num_heads) ** -0.5
        self.qkv = nn.Linear(dim, dim * 3)
        self.proj = nn.Linear(dim, dim)
        self.relative_position_bias_table = nn.Parameter(
            torch.zeros((2 * window_size - 1) ** 2, num_heads)
        )
        nn.init.trunc_normal_(self.relative_position_bias_table, std=0.02)

        side = torch.arange(window_size)
        coords = torch.stack(torch.meshgrid(side, side, indexing="ij")).flatten(1)  # 2, N
        offsets = coords[:, :, None] - coords[:, None, :] + window_size - 1  # 2, N, N, from 0
        index = offsets[0] * (2 * window_size - 1) + offsets[1]
        self.register_buffer("relative_position_index", index, persistent=False)

    def attention_mask(self, R: int, C: int, device: torch.device) -> Tensor:
        """(windows, N, N), True for pixels that were not neighbours before the shift."""

        def band(n: int) -> Tensor:
            i = torch.arange(n, device=device)
            return (i >= n - self.window_size).long() + (i >= n - self.shift_size)

        region = 3 * band(R)[:, None] + band(C)
        region = window_partition(region[None, :, :, None], self.window_size).squeeze(-1)
        return region[:, :, None] != region[:, None, :]

    def forward(self, x: Tensor) -> Tensor:
        _, R, C, D = x.shape
        w, shift = self.window_size, self.shift_size
        x = torch.roll(x, shifts=(-shift, -shift), dims=(1, 2))
        x = window_partition(x, w)  # B * windows, N, D

        qkv = self.qkv(x).view(-1, w * w, 3, self.num_heads, D // self.num_heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        attn = (q * self.scale) @ k.transpose(-2, -1)
        bias = self.relative_position_bias_table[self.relative_position_index]  # N, N, H
        attn = attn + bias.permute(2, 0, 1)
        if shift > 0:
            mask = self.attention_mask(R, C, x.device)
            attn = attn.unflatten(0, (-1, mask.shape[0]))  # B, windows, H, N, N
            attn = attn.masked_fill(mask[:, None], float("-inf")).flatten(0, 1)
        attn = attn.softmax(dim=-1)

        x = self.proj((attn @ v).transpose(1, 2).reshape(-1, w * w, D))
        x = window_reverse(x, w, R, C)
        return torch.roll(x, shifts=(shift, shift), dims=(1, 2))
