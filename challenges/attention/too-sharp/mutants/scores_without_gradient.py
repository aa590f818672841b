"""Scores are made under no_grad: queries and keys never learn."""

import torch
from torch import nn


class MultiHeadSelfAttention(nn.Module):
    """Lets every patch gather what it needs from the other patches.

    The mask hides patches, such as the padding of an image that has fewer of them.
    """

    def __init__(self, embed_dim: int, num_heads: int) -> None:
        super().__init__()
        head_dim, rest = divmod(embed_dim, num_heads)
        if rest:
            raise ValueError(f"{embed_dim=} cannot be shared by {num_heads=}")
        self.num_heads = num_heads
        self.scale = head_dim**-0.5
        self.qkv_proj = nn.Linear(embed_dim, 3 * embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)
        self.norm = nn.LayerNorm(embed_dim)

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        patches = self.qkv_proj(x).chunk(3, dim=-1)
        q, k, v = (part.unflatten(-1, (self.num_heads, -1)) for part in patches)

        torch.set_grad_enabled(False)
        similarity = torch.einsum("bqhd,bkhd->bhqk", q, k) * self.scale
        if mask is not None:
            similarity = similarity.masked_fill(mask[:, None], -torch.inf)
        attention = similarity.softmax(dim=-1)

        gathered = torch.einsum("bhqk,bkhd->bqhd", attention, v).flatten(start_dim=2)
        return x + self.norm(self.out_proj(gathered))
