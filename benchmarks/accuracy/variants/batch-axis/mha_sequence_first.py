"""nn.MultiheadAttention with its sequence-first default gets batch-first data.

Atlas: batch-first-default
"""

from torch import nn

DIMS, B, S, H, D = "x: B S D", 5, 11, 4, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(D, H)  # WRONG
        # RIGHT: self.attention = nn.MultiheadAttention(D, H, batch_first=True)
        self.norm = nn.LayerNorm(D)

    def forward(self, x):
        y, _ = self.attention(x, x, x)  # SHOWS
        return self.norm(x + y)
