"""Keys are repeated head by head, values are tiled: weights meet another group's values.

Atlas: gqa-tile-order
"""

from torch import nn

DIMS, B, S, H, G, D = "x: B S D", 5, 11, 6, 2, 48


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.out = nn.Linear(D, D), nn.Linear(D, D)
        self.k, self.v = nn.Linear(D, D // 3), nn.Linear(D, D // 3)

    def forward(self, x):
        B, S, D = x.shape
        q = self.q(x).view(B, S, H, -1).transpose(1, 2)
        k = self.k(x).view(B, S, G, -1).transpose(1, 2).repeat_interleave(H // G, dim=1)
        v = self.v(x).view(B, S, G, -1).transpose(1, 2).repeat(1, H // G, 1, 1)  # WRONG
        # RIGHT: v = self.v(x).view(B, S, G, -1).transpose(1, 2).repeat_interleave(H // G, dim=1)
        y = (q @ k.mT / 8**0.5).softmax(-1) @ v  # SHOWS
        return self.out(y.transpose(1, 2).reshape(B, S, D))
