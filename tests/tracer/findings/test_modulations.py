"""Scales of a condition that begin at zero."""

import pytest
import torch
from torch import Tensor, nn

import attnlab

D = 12


class Net(nn.Module):
    """A sublayer whose input a condition scales and shifts, and whose output it may gate."""

    def __init__(self, way: str, norm: bool = True, zero: bool = True) -> None:
        super().__init__()
        self.way = way
        self.norm = nn.LayerNorm(D, elementwise_affine=False) if norm else nn.Linear(D, D)
        self.mlp = nn.Sequential(nn.Linear(D, D), nn.GELU(), nn.Linear(D, D))
        self.condition = nn.Sequential(nn.SiLU(), nn.Linear(D, 3 * D))
        if zero:
            nn.init.zeros_(self.condition[-1].weight)
            nn.init.zeros_(self.condition[-1].bias)

    def forward(self, x: Tensor) -> Tensor:
        scale, shift, gate = self.condition(x.mean(1, keepdim=True)).chunk(3, dim=-1)
        y = self.norm(x)
        ways = {
            "scale and shift": lambda: x + gate * self.mlp(y * scale + shift),
            "scale": lambda: x + self.mlp(scale * y),
            "addcmul": lambda: x + self.mlp(torch.addcmul(shift, y, scale)),
            "1 + scale": lambda: x + gate * self.mlp(y * (1 + scale) + shift),
            "gate": lambda: x + gate * self.norm(self.mlp(x)),
            "added again": lambda: self.mlp(y + (scale * y + shift)),
            "a scale of its own": lambda: x + self.mlp(y * self.mlp(scale)),
        }
        return ways[self.way]()


@pytest.mark.parametrize(
    ("net", "told"),
    [
        (Net("scale and shift"), True),
        (Net("scale and shift", norm=False), True),
        (Net("scale"), True),
        (Net("addcmul"), True),
        (Net("scale", norm=False), False),
        (Net("scale and shift", zero=False), False),
        (Net("1 + scale"), False),
        (Net("gate"), False),
        (Net("added again"), False),
        (Net("a scale of its own"), False),
    ],
)
def test_a_scale_that_begins_at_zero_leaves_nothing(net: Net, told: bool) -> None:
    """A gate before a sum, a 1 and a layer that does not begin at zero are no fault."""
    seen = attnlab.trace(net.eval(), torch.randn(2, 5, D)).findings
    assert [f.rule for f in seen if f.rule == "scale-without-one"] == ["scale-without-one"] * told
