"""Attention that writes texts token by token, for generation under a tight budget of memory."""

import math

import torch
from torch import Tensor, nn


class Decoder(nn.Module):
    """Keeps keys and values of the text so far, in room that is made with its first token."""

    def __init__(self, dim: int, heads: int, room: int) -> None:
        super().__init__()
        self.heads, self.room = heads, room
        self.proj_in = nn.Linear(dim, 3 * dim)
        self.proj_out = nn.Linear(dim, dim)
        self.reset()

    def reset(self) -> None:
        """Forget the text."""
        self.store: Tensor | None = None  # (2, B, heads, room, hd), keys and values
        self.used = 0

    def reorder(self, parents: Tensor) -> None:
        """Row b becomes what row parents[b] was."""
        self.store = self.store[:, parents]

    def extend(self, new: Tensor) -> Tensor:
        """Write keys and values behind those before, and give all of them back."""
        if self.store is None:
            pair, rows, heads, _, hd = new.shape
            self.store = new.new_zeros(pair, rows, heads, self.room, hd)
        start, self.used = self.used, self.used + new.shape[3]
        self.store[:, :, :, start : self.used] = new
        return self.store[:, :, :, : self.used]

    def forward(self, x: Tensor) -> Tensor:
        rows, steps, dim = x.shape
        split = self.proj_in(x).view(rows, steps, 3, self.heads, dim // self.heads)
        queries, *new = split.permute(2, 0, 3, 1, 4).split([1, 2])
        keys, values = self.extend(new[0])
        scores = queries[0] @ keys.transpose(2, 3) / math.sqrt(keys.shape[-1])
        place = torch.arange(self.used, device=x.device)
        later = place > place[-steps:, None]
        weights = scores.masked_fill(later, -math.inf).softmax(dim=-1)
        return self.proj_out((weights @ values).transpose(1, 2).reshape(rows, steps, dim))
