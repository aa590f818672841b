"""nn.TransformerEncoderLayer with its sequence-first default gets batch-first data.

Atlas: batch-first-default
"""

from torch import nn

DIMS, B, S, H, D = "x: B S D", 5, 11, 4, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(D, H, 60)  # WRONG
        # RIGHT: self.layer = nn.TransformerEncoderLayer(D, H, 60, batch_first=True)

    def forward(self, x):
        return self.layer(x)  # SHOWS
