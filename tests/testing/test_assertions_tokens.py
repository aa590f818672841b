"""`assert_matches` for modules that take tokens."""

import pytest
import torch
from torch import nn

from attnlab.testing import PropertyFailed, assert_matches


class Lookup(nn.Module):
    """Rows of a table, learned or not."""

    def __init__(self, learns):
        super().__init__()
        self.learns = learns
        self.table = nn.Parameter(torch.randn(16, 8))

    def forward(self, ids):
        return (self.table if self.learns else self.table.detach())[ids]


def test_gradients_are_compared_where_inputs_are_numbers_of_tokens():
    """What nothing learns from gives the right values all the same."""
    assert_matches(Lookup(True), Lookup(True), "ids: B S int", output="B S D", sizes={"D": 8})
    with pytest.raises(PropertyFailed, match="no gradient reaches table"):
        assert_matches(Lookup(False), Lookup(True), "ids: B S int", output="B S D", sizes={"D": 8})
