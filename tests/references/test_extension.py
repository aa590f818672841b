"""Tables for other lengths: stretched, cut, or continued by sines (B5)."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from attnlab.references.extension import (
    HybridPositionalEncoding,
    interpolate_positions,
    truncate_positions,
)
from attnlab.references.positional import sinusoidal_positional_encoding

few = settings(max_examples=25, deadline=None)
lengths = st.integers(1, 24)


def table_of(S: int, D: int = 3) -> Tensor:
    torch.manual_seed(100 * S + D)
    return torch.randn(S, D, dtype=torch.float64)


def spelt_out(table: Tensor, length: int, *, align_corners: bool) -> Tensor:
    """The formula of the docstring, row by row, weights of two neighbours."""
    S, rows = len(table), []
    for q in range(length):
        if align_corners:
            at = q * (S - 1) / (length - 1) if length > 1 else 0.0
        else:
            at = min(max((q + 0.5) * S / length - 0.5, 0.0), S - 1.0)
        low = min(math.floor(at), S - 1)
        high = min(low + 1, S - 1)
        rows.append((1 - (at - low)) * table[low] + (at - low) * table[high])
    return torch.stack(rows)


@given(lengths, lengths, st.booleans())
@few
def test_linear_interpolation_is_the_formula_spelt_out(S: int, length: int, align: bool) -> None:
    """B5: both conventions, stretched and squeezed."""
    table = table_of(S)
    new = interpolate_positions(table, length, align_corners=align)
    expected = spelt_out(table, length, align_corners=align)
    torch.testing.assert_close(new, expected, rtol=0, atol=1e-12)


@given(lengths, lengths, st.booleans())
@few
def test_linear_interpolation_is_that_of_pytorch(S: int, length: int, align: bool) -> None:
    """B5: `F.interpolate` over channels-first rows, since `torch.interp` does not exist."""
    table = table_of(S)
    rows = F.interpolate(table.T[None], length, mode="linear", align_corners=align)[0].T
    new = interpolate_positions(table, length, align_corners=align)
    torch.testing.assert_close(new, rows, rtol=0, atol=1e-12)


@given(st.integers(2, 12), st.sampled_from(["linear", "cubic"]))
@few
def test_aligned_corners_keep_both_ends(S: int, mode: str) -> None:
    """B5: and every old row, where the new steps divide the old ones."""
    table = table_of(S)
    new = interpolate_positions(table, 3 * (S - 1) + 1, mode=mode)
    torch.testing.assert_close(new[::3], table, rtol=0, atol=1e-12)


@given(lengths, st.sampled_from(["linear", "cubic"]), st.booleans())
@few
def test_the_same_length_gives_the_same_table(S: int, mode: str, align: bool) -> None:
    """B5: nothing is blurred where nothing is to be done."""
    table = table_of(S)
    new = interpolate_positions(table, S, mode=mode, align_corners=align)
    torch.testing.assert_close(new, table, rtol=0, atol=1e-12)


def test_a_straight_line_stays_one() -> None:
    """B5: positions as values: the new rows say where in the old table they were read."""
    line = torch.arange(5.0, dtype=torch.float64).unsqueeze(1)
    new = interpolate_positions(line, 9)
    torch.testing.assert_close(new[:, 0], torch.linspace(0, 4, 9, dtype=torch.float64))
    cells = interpolate_positions(line, 10, align_corners=False)[:, 0]
    torch.testing.assert_close(cells[:3], torch.tensor([0, 0.25, 0.75], dtype=torch.float64))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_interpolation_keeps_the_type(dtype: torch.dtype) -> None:
    """B5: half types are computed in float32 and rounded once."""
    table = table_of(7).to(dtype)
    new = interpolate_positions(table, 11, mode="cubic", align_corners=False)
    assert new.dtype == dtype
    wide = interpolate_positions(table.float(), 11, mode="cubic", align_corners=False)
    assert torch.equal(new, wide.to(dtype))


def test_gradients_reach_the_old_table() -> None:
    """B5: a stretched table can be trained through."""
    table = table_of(4).requires_grad_()
    assert torch.autograd.gradcheck(lambda t: interpolate_positions(t, 7), table)


@given(st.integers(1, 12), st.data())
@few
def test_truncation_says_which_end_it_drops(S: int, data: st.DataObject) -> None:
    """B5: "end" keeps the first rows, "start" the last ones; both are copies."""
    table = table_of(S)
    length = data.draw(st.integers(0, S))
    first, last = truncate_positions(table, length), truncate_positions(table, length, drop="start")
    assert torch.equal(first, table[:length])
    assert torch.equal(last, table[S - length :])
    first.zero_()
    last.zero_()
    assert (table != 0).all()


@pytest.mark.parametrize("own", [False, True])
def test_hybrid_rows_are_learned_and_then_sinusoidal(own: bool) -> None:
    """B5: both are added to x, before and beyond the end of the table."""
    module = HybridPositionalEncoding(6, 4, scale=0.5).double()
    table = torch.cat(
        (
            module.learned.weight.detach(),
            0.5 * sinusoidal_positional_encoding(9, 6, dtype=torch.float64)[4:],
        )
    )
    x = torch.randn(2, 9, 6, dtype=torch.float64)
    ids = torch.stack((torch.arange(9), torch.tensor([0, 0, 8, 8, 3, 4, 5, 1, 2])))
    out = module(x, ids) if own else module(x)
    torch.testing.assert_close(out, x + (table[ids] if own else table), rtol=0, atol=1e-12)
    torch.testing.assert_close(module.get_encoding(9), table, rtol=0, atol=1e-12)
    assert torch.equal(module.get_encoding(3), table[:3])


def test_hybrid_steps_of_decoding_get_the_rows_of_the_prefill() -> None:
    """B5: across the seam."""
    module = HybridPositionalEncoding(6, 4)
    x = torch.randn(2, 9, 6)
    steps = [module(x[:, s : s + 1], torch.full((2, 1), s)) for s in range(9)]
    torch.testing.assert_close(torch.cat(steps, dim=1), module(x))


def test_hybrid_works_where_its_input_is() -> None:
    """B5: positions are made on the device of x; meta stands for any other than the default."""
    module = HybridPositionalEncoding(6, 4).to("meta")
    assert module(torch.zeros(2, 9, 6, device="meta")).device.type == "meta"


def test_hybrid_trains_the_rows_it_used() -> None:
    """B5: those beyond the sequence get a zero gradient, the sinusoidal part has none to give."""
    module = HybridPositionalEncoding(6, 4)
    module(torch.randn(3, 2, 6)).sum().backward()
    assert module.learned.weight.grad is not None
    assert module.learned.weight.grad[:, 0].tolist() == [3, 3, 0, 0]


@pytest.mark.parametrize(
    ("arguments", "options", "said"),
    [
        ((torch.zeros(2, 3, 4), 5), {}, r"table has shape \(2, 3, 4\): expected \(S, D\)"),
        ((torch.zeros(3, 4), 0), {}, "length=0: expected 1 or more"),
        ((torch.zeros(0, 4), 3), {}, "the number of rows of table=0: expected 1 or more"),
        ((torch.zeros(3, 4), 5), {"mode": "bicubic"}, "mode='bicubic': expected one of 'linear'"),
    ],
)
def test_interpolation_refuses_what_it_cannot_stretch(
    arguments: tuple[Tensor, int], options: dict[str, str], said: str
) -> None:
    """B5: naming argument, value and what is expected."""
    with pytest.raises(ValueError, match=said):
        interpolate_positions(*arguments, **options)


@pytest.mark.parametrize("length", [-1, 4])
def test_truncation_refuses_lengths_that_the_table_has_not(length: int) -> None:
    """B5: a slice would take what there is."""
    with pytest.raises(ValueError, match=rf"length={length}: expected 0 ... 3, the number of rows"):
        truncate_positions(torch.zeros(3, 4), length)
    with pytest.raises(ValueError, match="drop='left': expected one of 'end', 'start'"):
        truncate_positions(torch.zeros(3, 4), 2, drop="left")


def test_hybrid_refuses_odd_widths_negative_positions_and_other_shapes() -> None:
    """B5: naming argument, value and what is expected."""
    with pytest.raises(ValueError, match="d_model=5: expected a positive even number"):
        HybridPositionalEncoding(5, 4)
    module = HybridPositionalEncoding(6, 4)
    with pytest.raises(ValueError, match=r"position_ids holds -2 ... 1: expected positions from 0"):
        module(torch.zeros(1, 2, 6), torch.tensor([[1, -2]]))
    with pytest.raises(ValueError, match=r"x has shape \(2, 6\): expected \(B, S, D\)"):
        module(torch.zeros(2, 6))
    with pytest.raises(ValueError, match="seq_len=-1: expected 0 or more"):
        module.get_encoding(-1)
