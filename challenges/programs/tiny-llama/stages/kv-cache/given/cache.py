"""Keys and values of what a model has read. Given: nothing here is wrong, and it is not edited."""

import torch
from torch import Tensor


class KVCache:
    """For each layer the keys and values of all positions so far: (B, key heads, T, head_dim) each."""

    def __init__(self, layers: int) -> None:
        self.keys: list[Tensor | None] = [None] * layers
        self.values: list[Tensor | None] = [None] * layers

    def length(self, layer: int) -> int:
        """How many positions a layer holds."""
        keys = self.keys[layer]
        return 0 if keys is None else keys.size(2)

    def append(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Add those of new positions to a layer; returns the keys and values of all."""
        if self.keys[layer] is not None:
            keys = torch.cat([self.keys[layer], keys], dim=2)
            values = torch.cat([self.values[layer], values], dim=2)
        self.keys[layer], self.values[layer] = keys, values
        return keys, values
