"""Gradients stay finite, norms take the scale away, and each offset has a row of its own."""

import pytest
import torch
from torch import nn

from attnlab.candidate.live_properties import live_properties

D = 8


class Distances(nn.Module):
    def __init__(self, epsilon):
        super().__init__()
        self.lift, self.epsilon = nn.Linear(3, D), epsilon

    def forward(self, x):
        x = self.lift(x)
        apart = (x[:, :, None] - x[:, None]).square().sum(-1)
        return torch.sqrt(apart + self.epsilon) * (1 - torch.eye(x.shape[1]))


class ChannelNorm(nn.Module):
    def __init__(self, root):
        super().__init__()
        self.weight, self.root = nn.Parameter(torch.ones(D)), root

    def forward(self, x):
        x = x - x.mean(-1, keepdim=True)
        spread = x.square().mean(-1, keepdim=True)
        return self.weight * x / (spread.sqrt() if self.root else spread)


class Normed(nn.Module):
    def __init__(self, root):
        super().__init__()
        self.norm, self.out = ChannelNorm(root), nn.Linear(D, D)

    def forward(self, x):
        return self.out(self.norm(x))


class Window(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.table = nn.Parameter(torch.randn(49, 1))
        row, column = torch.arange(16) // 4, torch.arange(16) % 4
        down, right = row[:, None] - row + 3, column[:, None] - column + 3
        self.register_buffer("index", down * factor + right)

    def forward(self, x):
        return (x @ x.mT + self.table[self.index].squeeze(-1)).softmax(-1) @ x


@pytest.mark.parametrize(
    ("property_", "right", "wrong", "shape"),
    [
        ("finite-gradients", Distances(1e-8), Distances(0.0), (2, 5, 3)),
        ("norm-scale", Normed(root=True), Normed(root=False), (2, 5, D)),
        ("offset-table", Window(7), Window(4), (2, 16, D)),
    ],
)
def test_each_property_tells_right_from_wrong(property_, right, wrong, shape):
    """A root of 0 behind a mask, a division by the variance, a stride of the wrong width."""
    x = torch.randn(shape)
    outcomes = [
        next(c.outcome for c in live_properties(model, (x,)).checks if c.id == property_)
        for model in (right, wrong)
    ]
    assert outcomes == ["passed", "failed"]


def test_a_table_that_is_larger_than_its_offsets_is_no_fault():
    """A vocabulary beside an index of positions, or distances up to a limit that is far."""
    window = Window(7)
    window.table = nn.Parameter(torch.randn(200, 1))
    checks = live_properties(window, (torch.randn(2, 16, D),)).checks
    assert next(c.outcome for c in checks if c.id == "offset-table") == "skipped"
