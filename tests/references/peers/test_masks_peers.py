"""The mask rules of transformers, evaluated at every position (A4). True there = may attend."""

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import pytest
import torch
from torch import Tensor

from attnlab.references import masks

pytest.importorskip("transformers")
rules = pytest.importorskip("transformers.masking_utils")


def evaluated(rule, B: int, q_len: int, k_len: int) -> Tensor:
    """(B, 1, Sq, Sk), True = may not, of a rule that takes a query's place among the keys."""
    b = torch.arange(B).view(B, 1, 1, 1)
    i = torch.arange(q_len).view(1, 1, q_len, 1) + k_len - q_len
    j = torch.arange(k_len).view(1, 1, 1, k_len)
    return ~torch.as_tensor(rule(b, torch.zeros_like(b), i, j)).expand(B, 1, q_len, k_len)


@pytest.mark.parametrize(("q_len", "k_len"), [(7, 7), (1, 7), (3, 7)])
def test_causal_and_windows(q_len: int, k_len: int) -> None:
    """A4: their sliding window counts the keys that are seen, as ours."""
    found = masks.causal_mask(q_len, k_len)
    assert torch.equal(found, evaluated(rules.causal_mask_function, 1, q_len, k_len))
    for window in (1, 3, 20):
        rule = rules.sliding_window_causal_mask_function(window)
        found = masks.sliding_window_mask(q_len, k_len, window=window)
        assert torch.equal(found, evaluated(rule, 1, q_len, k_len))


def test_two_sided_windows() -> None:
    """A4: theirs counts the steps to each side, so their window is ours less 1."""
    rule = rules.sliding_window_bidirectional_mask_function(2)
    found = masks.sliding_window_mask(7, window=3, two_sided=True)
    assert torch.equal(found, evaluated(rule, 1, 7, 7))


def test_packed_and_padded() -> None:
    """A4: segments by their ids, padding by the keys that are real."""
    segments = torch.tensor([[0, 0, 0, 1, 1], [0, 1, 2, 2, 2]])
    rule = rules.packed_sequence_mask_function(segments)
    assert torch.equal(masks.packed_mask(segments), evaluated(rule, 2, 5, 5))
    real = torch.tensor([[1, 1, 1, 0], [1, 0, 0, 0]]).bool()
    rule = rules.padding_mask_function(real)
    found = masks.padding_mask(torch.tensor([3, 1]), 4).expand(2, 1, 4, 4)
    assert torch.equal(found, evaluated(rule, 2, 4, 4))


def test_packing_is_found_from_positions() -> None:
    """A4: positions that begin anew mark the segments, and the other way round."""
    segments = masks.segment_ids([3, 1, 4])
    positions = masks.segment_positions(segments)
    assert torch.equal(rules.find_packed_sequence_indices(positions), segments)
