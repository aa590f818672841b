"""Biases by distance favour what is near, on each side that is seen."""

import pytest
import torch
from torch import Tensor, nn

from attnlab.candidate.live_properties import Hints, live_properties


class Biased(nn.Module):
    """Self-attention with a bias (H, S, S) of relative positions, causal or not."""

    def __init__(self, bias, causal: bool) -> None:
        super().__init__()
        self.bias, self.causal = bias, causal
        self.qkv = nn.Linear(12, 36)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).view(*x.shape[:2], 9, 4).transpose(1, 2).chunk(3, 1)
        place = torch.arange(x.shape[1])
        later = place - place[:, None]  # of the key
        slopes = torch.tensor([0.5, 0.25, 0.125])[:, None, None]
        scores = q @ k.mT / 2 + self.bias(later, slopes)
        if self.causal:
            scores = scores.masked_fill(later > 0, -torch.inf)
        return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)


class Masked(Biased):
    """The same for callers who may hide what lies ahead."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return super().forward(x)


TABLE = torch.randn(3, 64, generator=torch.Generator().manual_seed(0))


def table(later: Tensor) -> Tensor:
    return TABLE[:, later]


def hidden(bias: Tensor, later: Tensor) -> Tensor:
    """A bias that hides what lies ahead before it meets the scores."""
    return bias.float().masked_fill(later > 0, -torch.inf)


@pytest.mark.parametrize(
    ("bias", "causal", "expected"),
    [
        (lambda later, m: m * later, True, "passed"),
        (lambda later, m: -m * later, True, "failed"),
        (lambda later, m: m * later, False, "failed"),
        (lambda later, m: -m * later.abs(), False, "passed"),
        (lambda later, _: table(later + 30), False, "passed"),
        (lambda later, _: table((-later).clamp(min=0)), True, "passed"),
        (lambda later, _: table((-later).clamp(min=0)), False, "failed"),
        (lambda later, _: table(later.clamp(min=0)), True, "failed"),
        (lambda later, _: torch.zeros(3, *later.shape), False, "skipped"),
        (lambda later, _: hidden(table(later.clamp(min=0)), later), True, "failed"),
        (lambda later, _: hidden(table((-later).clamp(min=0)), later), True, "passed"),
        (lambda later, m: hidden(-later, later) * -m, True, "passed"),
    ],
)
def test_a_bias_by_distance_falls_on_both_sides(bias, causal: bool, expected: str) -> None:
    """Slopes of either sign, absolute distances, tables for one side and for both, also masked."""
    report = live_properties(Biased(bias, causal), (torch.randn(2, 7, 12),))
    assert next(c.outcome for c in report.checks if c.id == "distance-bias") == expected
    assert ("causal" in {p.name for p in report.promises}) == causal


def test_what_lies_ahead_may_be_hidden_by_a_mask_from_outside() -> None:
    """Nothing is said of that side then; a promise to be causal says it as well."""
    net, x = Masked(lambda later, m: m * later, causal=False), torch.randn(2, 7, 12)
    (found,) = [c for c in live_properties(net, (x,)).checks if c.id == "distance-bias"]
    assert found.outcome == "passed"
    net = Biased(lambda later, m: m * later, causal=False)
    hints = Hints(promised=("causal",))
    (found,) = [
        c for c in live_properties(net, (x,), hints=hints).checks if c.id == "distance-bias"
    ]
    assert found.outcome == "passed"
