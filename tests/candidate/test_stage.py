"""What a stage counts: rows through a weight, however it is applied, and the largest tensor."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attnlab.candidate.stage import ComputeMeter, fill_new, plain_value

LAYER = nn.Linear(4, 6)
W = LAYER.weight
X = torch.randn(2, 3, 4)


@pytest.mark.parametrize(
    "apply",
    [
        lambda: LAYER(X),
        lambda: F.linear(input=X, weight=W),
        lambda: X @ W.T,
        lambda: torch.matmul(X, W.T),
        lambda: torch.einsum("bsd,od->bso", X, W),
        lambda: torch.einsum("bsd,ohd->bsoh", X, W.view(3, 2, 4)),
        lambda: torch.addmm(LAYER.bias, X.view(6, 4), W.T),
    ],
)
def test_rows_are_counted_however_a_weight_is_applied(apply):
    """Six positions go through it in each of these spellings."""
    with torch.no_grad(), ComputeMeter([W]) as meter:
        apply()
    assert max(meter.rows.values()) == 6


def test_products_without_a_weight_are_not_counted():
    """Scores are no layer, but they may be the largest tensor."""
    q = torch.randn(2, 2, 5, 4)
    with ComputeMeter([W]) as meter:
        q @ q.mT
    assert not meter.rows
    assert meter.largest == (2, 2, 5, 5)


def test_fused_attention_counts_as_its_scores():
    """Which kernel runs is not the candidate's doing."""
    q = torch.randn(1, 2, 9, 4)
    with ComputeMeter([W]) as meter:
        F.scaled_dot_product_attention(q, q, q)
    assert meter.largest == (1, 2, 9, 9)


def test_new_parameters_get_values_by_their_shapes():
    """Two programs that name them differently have the same; those of the model stay."""
    old = nn.Linear(4, 4)
    before = old.weight.clone()
    one, two = nn.Sequential(old, nn.Linear(4, 3)), nn.ModuleDict({"head": nn.Linear(4, 3)})
    fill_new(one, old.parameters())
    fill_new(two, ())
    assert torch.equal(one[1].weight, two["head"].weight)
    assert torch.equal(one[1].bias, two["head"].bias)
    assert torch.equal(old.weight, before)


def test_a_value_is_made_plain():
    """Lists, dicts and tensors pass; anything else is named."""
    found = plain_value({"a": (torch.ones(1, requires_grad=True), 2), 3: object()})
    assert found["a"][1] == 2
    assert not found["a"][0].requires_grad
    assert found["3"] == "a object"
