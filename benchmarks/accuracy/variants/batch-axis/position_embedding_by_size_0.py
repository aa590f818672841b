"""Learned positions counted along the batch.

Atlas: batch-first-default
"""

import torch
from torch import nn

DIMS, B, S, V, D = "ids: B S int", 5, 11, 61, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(V, D), nn.Embedding(64, D)

    def forward(self, ids):
        places = torch.arange(ids.size(0)).unsqueeze(1)  # WRONG
        # RIGHT: places = torch.arange(ids.size(1)).unsqueeze(0)
        return self.tokens(ids) + self.positions(places)  # SHOWS
