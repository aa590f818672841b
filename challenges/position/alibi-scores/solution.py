"""ALiBi: what a score loses by the distance between its query and its key."""

import math

import torch
from torch import Tensor, nn


def get_slopes(n_heads: int) -> list[float]:
    """A slope per head; what a power of two does not cover comes from between its slopes."""
    closest = 2 ** math.floor(math.log2(n_heads))
    powers = [2 ** (-8 * (i + 1) / closest) for i in range(closest)]
    between = [2 ** (-8 * (i + 0.5) / closest) for i in range(n_heads - closest)]
    return powers + between


class ALiBi(nn.Module):
    """Adds the bias to scores; the last one is kept, since all layers ask for the same."""

    def __init__(self, num_heads: int) -> None:
        super().__init__()
        self.slopes = get_slopes(num_heads)
        self._last: Tensor | None = None

    def build_bias(self, q_len: int, k_len: int, device: torch.device) -> Tensor:
        """(H, Sq, Sk) in float32: the last query stands at the last key."""
        k_pos = torch.arange(k_len, device=device)
        q_pos = torch.arange(k_len - q_len, k_len, device=device)
        distance = (q_pos[:, None] - k_pos[None, :]).abs()
        slopes = torch.tensor(self.slopes, device=device).view(-1, 1, 1)
        return -slopes * distance

    def forward(self, scores: Tensor) -> Tensor:
        q_len, k_len = scores.shape[-2:]
        if self._last is None or self._last.shape[-2:] != (q_len, k_len):
            self._last = self.build_bias(q_len, k_len, scores.device)
        return scores + self._last.to(scores)
