"""Data moved to sequence-first for an attention that wants the batch first.

Atlas: batch-first-default
"""

from torch import nn

DIMS, B, S, H, D = "x: B S D", 5, 11, 4, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(D, H, batch_first=True)

    def forward(self, x):
        y = x.transpose(0, 1)  # WRONG
        # RIGHT: y = x
        return self.attention(y, y, y, need_weights=False)[0]  # SHOWS
