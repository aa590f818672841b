"""Rotary positions that keep norms, and some that do not."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attnlab.candidate.live_properties import live_properties


def pairs_together(x: Tensor) -> Tensor:
    return torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)


def halves(x: Tensor) -> Tensor:
    return torch.cat((-x[..., x.shape[-1] // 2 :], x[..., : x.shape[-1] // 2]), -1)


def pairs_taken_apart(x: Tensor) -> Tensor:
    return torch.cat((-x[..., 1::2], x[..., ::2]), -1)


class Rotary(nn.Module):
    """Self-attention whose queries and keys are turned; angles stand in pairs or in halves."""

    def __init__(self, turn, paired: bool) -> None:
        super().__init__()
        self.turn, self.paired = turn, paired
        self.qkv = nn.Linear(12, 36)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).view(*x.shape[:2], 9, 4).transpose(1, 2).chunk(3, 1)
        angles = torch.arange(x.shape[1])[:, None] * torch.tensor([1.0, 0.1])
        angles = angles.repeat_interleave(2, -1) if self.paired else angles.repeat(1, 2)
        q, k = (t * angles.cos() + self.turn(t) * angles.sin() for t in (q, k))
        return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)


@pytest.mark.parametrize(
    ("turn", "paired", "expected"),
    [
        (pairs_together, True, "passed"),
        (halves, False, "passed"),
        (pairs_taken_apart, True, "failed"),
        (pairs_together, False, "failed"),
        (halves, True, "failed"),
    ],
)
def test_a_rotation_keeps_norms(turn, paired: bool, expected: str) -> None:
    """Pairs and halves are both right, one for the features and the other for the angles is not."""
    report = live_properties(Rotary(turn, paired), (torch.randn(2, 6, 12),))
    assert next(c.outcome for c in report.checks if c.id == "norm-kept") == expected
