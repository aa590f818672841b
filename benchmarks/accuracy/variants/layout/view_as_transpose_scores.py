"""Keys viewed as (B, hd, S), not transposed.

Atlas: view-used-as-transpose-sb
"""

from torch import nn

DIMS, B, S, D = "x: B S D", 5, 11, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(D, D) for _ in range(3))

    def forward(self, x):
        B, S, D = x.shape
        q, k, v = self.query(x), self.key(x), self.value(x)
        scores = q.bmm(k.view(B, D, S)) / D**0.5  # WRONG
        # RIGHT: scores = q.bmm(k.transpose(1, 2)) / D**0.5
        return scores.softmax(dim=-1).bmm(v)
