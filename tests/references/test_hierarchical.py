"""Positions on several levels (B6)."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlab.references.hierarchical import HierarchicalPositionalEncoding, level_positions

few = settings(max_examples=20, deadline=None)
levels = st.lists(st.integers(1, 5), min_size=1, max_size=4)


@given(levels, st.data())
@few
def test_levels_are_digits(sizes: list[int], data: st.DataObject) -> None:
    """B6: put together again they are the position, and each stays below its level's size."""
    S = data.draw(st.integers(0, math.prod(sizes)))
    digits = level_positions(S, sizes)
    assert digits.shape == (S, len(sizes))
    for p, row in enumerate(digits.tolist()):
        value = 0
        for digit, size in zip(row, sizes, strict=True):
            assert 0 <= digit < size
            value = value * size + digit
        assert value == p


def test_the_example_of_the_docstring() -> None:
    """B6: position 27 of 3 paragraphs of 4 sentences of 5 words."""
    assert level_positions(60, (3, 4, 5))[27].tolist() == [1, 1, 2]


@given(levels, st.data())
@few
def test_adds_one_row_per_level(sizes: list[int], data: st.DataObject) -> None:
    """B6: of a regular hierarchy, or by ids that differ between sequences."""
    S = data.draw(st.integers(1, math.prod(sizes)))
    module = HierarchicalPositionalEncoding(sizes, 3).double()
    x = torch.randn(2, S, 3, dtype=torch.float64)
    ids = torch.stack([torch.randint(size, (2, S)) for size in sizes], dim=-1)
    regular = level_positions(S, sizes).expand(2, S, len(sizes))
    for got, at in ((module(x), regular), (module(x, ids), ids)):
        expected = x.clone()
        for level, weight in enumerate(module.weights):
            expected += weight.detach()[at[..., level]]
        torch.testing.assert_close(got, expected)
    torch.testing.assert_close(module.get_encoding(S), (module(x) - x)[0].detach())


def test_few_rows_tell_many_positions_apart() -> None:
    """B6: 3 + 4 + 5 rows for 60 positions, all different."""
    module = HierarchicalPositionalEncoding((3, 4, 5), 8)
    assert sum(len(weight) for weight in module.weights) == 12
    assert len(module.get_encoding(60).unique(dim=0)) == 60
    assert not module.get_encoding(60).requires_grad


@pytest.mark.parametrize(
    ("ids", "error", "said"),
    [
        ([[[0, 0], [3, 0]]], ValueError, r"level_ids\[..., 0\] holds 0 ... 3: expected .* to 2"),
        ([[[0, 0], [2, -1]]], ValueError, r"level_ids holds -1 ... 2: expected positions from 0"),
        ([[0, 1]], ValueError, r"level_ids has shape \(1, 2\): expected \(B, S, L\) = \(1, 2, 2\)"),
        ([[[0.0, 0.0], [1.0, 1.0]]], TypeError, "level_ids has dtype torch.float32"),
    ],
)
def test_levels_that_do_not_exist_are_refused(
    ids: list[int], error: type[Exception], said: str
) -> None:
    """B6: naming the level and the values."""
    with pytest.raises(error, match=said):
        HierarchicalPositionalEncoding((3, 4), 6)(torch.zeros(1, 2, 6), torch.tensor(ids))


def test_sequences_and_sizes_beyond_the_levels_are_refused() -> None:
    """B6: naming argument, value and what is expected."""
    module = HierarchicalPositionalEncoding((3, 4), 6)
    with pytest.raises(ValueError, match=r"seq_len=13: expected 0 ... 12, the product of level_si"):
        module(torch.zeros(1, 13, 6))
    with pytest.raises(ValueError, match=r"x has shape \(2, 6\): expected \(B, S, D\) with D = 6"):
        module(torch.zeros(2, 6))
    for sizes in ((), (3, 0)):
        with pytest.raises(ValueError, match=r"level_sizes=\(.*\): expected one size or more"):
            HierarchicalPositionalEncoding(sizes, 6)
    with pytest.raises(ValueError, match="d_model=0: expected 1 or more"):
        HierarchicalPositionalEncoding((3,), 0)
