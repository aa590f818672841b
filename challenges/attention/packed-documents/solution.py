"""Attention over rows into which several documents are packed, so that no place is spent on padding."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def document_mask(documents: Tensor) -> Tensor:
    """(B, 1, S, S), True where the query may see the key: its own document, not later."""
    same = documents.unsqueeze(2) == documents.unsqueeze(1)
    return same.tril().unsqueeze(1)


def document_positions(documents: Tensor) -> Tensor:
    """(B, S): how far each token is from the start of its document."""
    places = torch.arange(documents.shape[1], device=documents.device)
    is_start = F.pad(documents[:, 1:] != documents[:, :-1], (1, 0), value=True)
    starts = torch.where(is_start, places, 0).cummax(dim=1).values
    return places - starts


class PackedAttention(nn.Module):
    """Adds learned positions, then attends within each document."""

    def __init__(self, width: int, num_heads: int, max_len: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.wpe = nn.Embedding(max_len, width)
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)

    def forward(self, x: Tensor, documents: Tensor) -> Tensor:
        x = x + self.wpe(document_positions(documents))
        query, key, value = self.c_attn(x).split(x.shape[-1], dim=-1)
        query, key, value = map(self.split_heads, (query, key, value))
        mask = document_mask(documents)
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        return self.c_proj(self.merge_heads(mixed))

    def split_heads(self, t: Tensor) -> Tensor:
        return t.reshape(*t.shape[:2], self.num_heads, -1).permute(0, 2, 1, 3)

    def merge_heads(self, t: Tensor) -> Tensor:
        return t.permute(0, 2, 1, 3).flatten(start_dim=2)
