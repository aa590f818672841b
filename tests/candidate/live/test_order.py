"""The order of positions: whose outputs must not hear of what comes later."""

from pathlib import Path

import pytest
import torch
from torch import nn

from attnlab import verify


class Biased(nn.Module):
    """Float masks that are added, so a row of padding in front has equal scores everywhere."""

    def __init__(self, dim=8):
        super().__init__()
        self.dim = dim
        self.embed, self.qkv = nn.Embedding(11, dim), nn.Linear(dim, 3 * dim)
        self.ahead = 1

    def forward(self, ids, attention_mask):
        low = torch.finfo(torch.float32).min
        future = torch.full((ids.shape[1],) * 2, low).triu(self.ahead)
        bias = future + (1 - attention_mask[:, None, :]) * low
        q, k, v = self.qkv(self.embed(ids)).chunk(3, -1)
        scores = q @ k.mT / self.dim**0.5 + bias.clamp(min=low)
        return scores.softmax(-1) @ v


def test_rows_of_padding_may_see_what_is_ahead():
    """All their keys are hidden, and nobody reads their output; other rows may not."""
    model, ids, mask = Biased(), torch.arange(14).view(2, 7) % 11, torch.ones(2, 7).long()
    mask[1, :3] = 0
    assert not verify(model, ids, mask, promises=["causal"]).broken
    model.ahead = 2
    assert "causality" in [c.id for c in verify(model, ids, mask, promises=["causal"]).broken]


class Band(nn.Module):
    """A window that opens the far future, for heads as wide as the input is long."""

    def __init__(self, width=7):
        super().__init__()
        self.width, self.embed = width, nn.Embedding(11, 2 * width)
        self.qkv = nn.Linear(2 * width, 6 * width)

    def forward(self, ids):
        low = torch.full((ids.shape[1],) * 2, torch.finfo(torch.float32).min)
        mask = low.triu(1).tril(3)
        q, k, v = self.qkv(self.embed(ids)).unflatten(-1, (3, 2, self.width)).unbind(2)
        scores = q.transpose(1, 2) @ k.permute(0, 2, 3, 1) / self.width**0.5
        weights = torch.softmax(scores + mask, dim=-1)
        return (weights @ v.transpose(1, 2)).transpose(1, 2).flatten(2)


def test_a_leaking_mask_is_told_where_it_is_made_though_axes_have_one_size():
    """What attention returns then has two axes that may be positions, and shows it later."""
    ids = torch.arange(14).view(2, 7) % 11
    (broken,) = verify(Band(), ids, promises=["causal"]).broken
    assert "tril(3)" in Path(__file__).read_text("utf-8").splitlines()[broken.line - 1]


class Slots(nn.Module):
    """Its table of positions is added as it is: nothing looks up a row."""

    def __init__(self, length=7, dim=8):
        super().__init__()
        self.embed, self.slot = nn.Embedding(11, dim), nn.Embedding(length, dim)
        self.layer = nn.MultiheadAttention(dim, 2, batch_first=True)

    def forward(self, ids):
        x = self.embed(ids) + self.slot.weight
        return self.layer(x, x, x)[0]


def test_a_table_that_is_added_as_it_is_tells_positions_apart():
    """No order is promised to make no difference."""
    report = verify(Slots(), torch.arange(14).view(2, 7) % 11)
    assert "permutation-equivariance" not in [c.id for c in report.broken]


class Turned(nn.Module):
    """Its angles are a plain attribute, and a function turns queries and keys by them."""

    def __init__(self, length=7, dim=8):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)
        self.turns = torch.polar(torch.ones(length, dim // 2), torch.randn(length, dim // 2))

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        q, k = (self.turn(t) for t in (q, k))
        return nn.functional.scaled_dot_product_attention(q, k, v)

    def turn(self, t):
        pairs = torch.view_as_complex(t.unflatten(-1, (-1, 2)))
        return torch.view_as_real(pairs * self.turns).flatten(-2)


class TurnedByItsCaller(Turned):
    """The same, with the angles in another object."""

    def __init__(self):
        super().__init__()
        self.held = [self.__dict__.pop("turns")]

    def turn(self, t):
        pairs = torch.view_as_complex(t.unflatten(-1, (-1, 2)))
        return torch.view_as_real(pairs * self.held[0]).flatten(-2)


@pytest.mark.parametrize("kind", [Turned, TurnedByItsCaller])
def test_turns_that_are_no_buffer_tell_positions_apart(kind):
    """No order is promised to make no difference."""
    report = verify(kind(), torch.randn(2, 7, 8))
    assert "permutation-equivariance" not in [c.id for c in report.broken]
