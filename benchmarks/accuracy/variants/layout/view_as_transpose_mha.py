"""view(S, B, D) used to move to sequence-first.

Atlas: view-used-as-transpose-sb
"""

from torch import nn

DIMS, B, S, H, D = "x: B S D", 5, 11, 4, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(D, H)

    def forward(self, x):
        B, S, D = x.shape
        y = x.view(S, B, D)  # WRONG
        # RIGHT: y = x.transpose(0, 1)
        y, _ = self.attention(y, y, y, need_weights=False)
        return x + y.transpose(0, 1)
