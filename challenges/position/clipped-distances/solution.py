"""Attention with keys that depend on how far away they are (after Shaw, Uszkoreit and Vaswani)."""

import torch
from torch import nn


class RelativeAttention(nn.Module):
    """One head; distances beyond `reach` are all alike."""

    def __init__(self, width: int, reach: int):
        super().__init__()
        self.reach = reach
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.distance = nn.Embedding(2 * reach + 1, width)

    def rows(self, length: int, device: torch.device) -> torch.Tensor:
        """The row of the table for each query (first axis) and key (second axis)."""
        place = torch.arange(length, device=device)
        ahead = place.unsqueeze(0) - place.unsqueeze(1)
        return ahead.clamp(-self.reach, self.reach) + self.reach

    def scores(self, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        batch, length, width = q.shape
        content = torch.bmm(q, k.transpose(1, 2))
        for_each_row = q @ self.distance.weight.T  # (B, S, 2 * reach + 1)
        picked = self.rows(length, q.device).expand(batch, length, length)
        return (content + for_each_row.gather(2, picked)) / width**0.5

    def forward(self, x: torch.Tensor, keep: torch.Tensor | None = None) -> torch.Tensor:
        scores = self.scores(self.query(x), self.key(x))
        if keep is not None:
            scores = scores.masked_fill(~keep.unsqueeze(1), float("-inf"))
        return self.out(torch.bmm(scores.softmax(dim=2), self.value(x)))
