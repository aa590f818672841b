"""Which values are the same numbers, however they are laid out."""

import pytest
import torch

from attnlab.candidate.value_recorder import Value, Values
from attnlab.diagnosis.pairing import (
    Pairing,
    Side,
    fingerprint,
    layouts,
    mask_in,
    same_layout,
    without_repeats,
)

B, S, H, HD = 2, 5, 3, 4
HEADS = torch.randn(B, S, H, HD, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
SCORES = torch.randn(B, H, S, S, generator=torch.Generator().manual_seed(2), dtype=torch.float64)


@pytest.mark.parametrize(
    "other",
    [
        HEADS.transpose(1, 2),
        HEADS.reshape(B, S, H * HD),
        HEADS.transpose(1, 2).reshape(B * H, S, HD),
        HEADS[:, None],
        HEADS.permute(2, 0, 1, 3),
    ],
)
def test_whole_axes_may_move_merge_and_split(other):
    """What right programs do differently; and it holds from either side."""
    assert same_layout(HEADS, other.squeeze())
    assert same_layout(other.squeeze(), HEADS)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (HEADS, HEADS.reshape(B, H, S, HD)),  # positions read as heads
        (HEADS, HEADS.transpose(2, 3).reshape(B, S, H * HD)),  # channels before heads
        (SCORES, SCORES.transpose(-1, -2)),  # keys for queries
        (HEADS, HEADS.flip(1)),
        (HEADS, 2 * HEADS),
        (HEADS, HEADS[:1]),
    ],
)
def test_mixed_axes_are_no_layout(one, other):
    """The same numbers at other places are what a bug looks like."""
    assert not same_layout(one, other)


def test_a_layout_gives_the_shape_that_is_asked_for():
    """In the order that keeps heads before their channels."""
    laid = next(layouts(HEADS, (B, H, S, HD)))
    assert torch.equal(laid, HEADS.transpose(1, 2))
    assert list(layouts(HEADS, (7, 7))) == []


def test_repeats_say_nothing():
    """A mask that is expanded is the mask."""
    mask = torch.ones(S, S).tril()
    assert torch.equal(without_repeats(mask.expand(B, H, S, S)), mask.double())


def test_a_fingerprint_knows_no_layout_and_keeps_infinity():
    """Masked scores have one too."""
    masked = SCORES.masked_fill(torch.ones(S, S).triu(1).bool(), -torch.inf)
    assert torch.allclose(fingerprint(masked), fingerprint(masked.permute(3, 1, 0, 2)))
    assert not torch.allclose(fingerprint(masked), fingerprint(SCORES))


def side(*numbers):
    values = [Value(f"op{i}", "", i, "", i, 0, [], n) for i, n in enumerate(numbers)]
    return Side(Values(values, len(values) - 1, numbers[-1]))


def test_a_class_is_no_chain_of_layouts():
    """Split, moved and merged again, channels are in another order."""
    split = HEADS[0, 0].reshape(H, HD)
    found = side(split.flatten(), split, split.T, split.T.flatten()).classes
    assert found[:2] == [0, 0]
    assert found[3] != 0


def test_a_mask_is_known_in_whatever_way_it_closes():
    """What mine allows is what the reference adds, or has in its scores alone."""
    later = torch.ones(S, S, dtype=torch.bool).triu(1)
    added = torch.where(later, -torch.inf, 0.0).double()
    for theirs in (added, ~later, SCORES.masked_fill(later, -1e9)):
        assert Pairing(side(~later, HEADS), side(theirs, HEADS)).known(0)
    wider = torch.ones(S, S, dtype=torch.bool).triu()
    assert not Pairing(side(~wider, HEADS), side(added, HEADS)).known(0)
    assert mask_in(SCORES) is None
    assert mask_in(torch.ones(S, S)) is None
