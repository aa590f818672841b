"""nn.MultiheadAttention wants masks as (B*H, S, S), batch first; these are tiled heads first.

Atlas: mask-repeat-order
"""

from torch import nn

DIMS, B, S, H, D = "x: B S D, mask: B S S bool", 5, 11, 4, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(D, H, batch_first=True)

    def forward(self, x, mask):
        mask = mask.repeat(H, 1, 1)  # WRONG
        # RIGHT: mask = mask.repeat_interleave(H, dim=0)
        return self.attention(x, x, x, attn_mask=mask)[0]  # SHOWS
