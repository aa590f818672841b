"""The reference's values in the shape and the kind that mine has."""

import torch

from attnlab.candidate.value_recorder import Value, Values
from attnlab.diagnosis.borrowed import laid_out, spread, written_mask, written_masks
from attnlab.diagnosis.pairing import Side

LATER = torch.ones(5, 5, dtype=torch.bool).triu(1)
SCORES = torch.randn(2, 3, 5, 5, dtype=torch.float64).masked_fill(LATER, -torch.inf)
THEIRS = Side(Values([Value("masked_fill", "", 1, "", 0, 0, [], SCORES)], 0, SCORES))


def test_a_mask_is_written_as_mine_is():
    """Bool, zeros and ones, or zeros and a low number; closed or open; though the reference has it
    in its scores alone."""
    allowed = written_mask(THEIRS, 0, torch.ones(1, 1, 5, 5).bool(), closes=False)
    assert torch.equal(allowed, (~LATER).double()[None, None])
    low = torch.zeros(2, 5, 5).double()
    low[0, 0, 1] = -(2.0**40)
    added = written_mask(THEIRS, 0, low, closes=True)
    assert torch.equal(added[1], LATER * low.min())
    assert len(list(written_masks(THEIRS, LATER))) == 2
    assert list(written_masks(THEIRS, torch.randn(5, 5))) == []


def test_what_mine_repeats_may_be_larger():
    """A mask of the first row alone is put right by one of all rows."""
    rows = torch.randn(2, 5, 5)
    found = list(spread(rows, torch.ones(1, 1, 5, 5)))
    assert any(torch.equal(each, rows[:, None]) for each in found)
    assert next(laid_out(THEIRS, 0, SCORES)).shape == SCORES.shape
