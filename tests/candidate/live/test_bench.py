"""Outputs are compared place by place, also where they hold NaN."""

import pytest
import torch
from torch import nan

from attnlab.candidate.live.bench import largest_gap


@pytest.mark.parametrize("value", [nan, float("inf"), -float("inf")])
def test_the_same_value_at_the_same_place_is_no_gap(value):
    """A model that gives NaN gives it again: that says nothing about a second call."""
    out = torch.tensor([1.0, value, 3.0])
    assert largest_gap(out, out.clone()) == 0
    assert largest_gap(out, torch.tensor([1.0, value, 5.0])) == 2
    assert not largest_gap(out, torch.tensor([1.0, 2.0, 3.0])) <= 1
