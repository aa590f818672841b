"""Padding where the file puts it: the models of this file say that batches are left-padded."""

import pytest
import torch
from torch import nn

from attnlab import verify


class Net(nn.Module):
    def __init__(self, counted, dim=8):
        super().__init__()
        self.counted, self.dim = counted, dim
        self.embed, self.position = nn.Embedding(11, dim), nn.Embedding(32, dim)

    def forward(self, ids, attention_mask):
        places = torch.arange(ids.shape[1]).expand_as(ids)
        if self.counted:
            places = (attention_mask.cumsum(-1) - 1).clamp(min=0)
        x = self.embed(ids) + self.position(places)
        scores = (x @ x.mT / self.dim**0.5).masked_fill(attention_mask[:, None] == 0, -1e9)
        return x + scores.softmax(-1) @ x


@pytest.mark.parametrize("counted", [True, False])
def test_positions_are_counted_from_the_first_real_one(counted):
    """`arange` gives a prompt that is padded in front other positions than the prompt alone."""
    mask = torch.ones(2, 7).long()
    told = verify(Net(counted), torch.arange(14).view(2, 7) % 11, mask).broken
    assert [c.id for c in told] == ["padding-invariance"] * (not counted)
    assert all("before 5 real ones" in c.message for c in told)
