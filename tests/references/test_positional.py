"""The sinusoidal reference against the formula spelt out, and its own laws (B3, B8, B9)."""

import copy
import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from attnlab.references.positional import (
    LAYOUTS,
    SinusoidalPositionalEncoding,
    sinusoidal_frequencies,
    sinusoidal_positional_encoding,
)

few = settings(max_examples=20, deadline=None)
lengths = st.integers(1, 60)
even_widths = st.integers(1, 20).map(lambda pairs: 2 * pairs)
bases = st.sampled_from([2.0, 100.0, 10000.0, 500000.0])


def spelt_out(S: int, D: int, base: float = 10000.0) -> Tensor:
    """The formula entry by entry, in Python's own float64."""
    rows = []
    for p in range(S):
        angles = [p / base ** ((c - c % 2) / D) for c in range(D)]
        rows.append([math.cos(a) if c % 2 else math.sin(a) for c, a in enumerate(angles)])
    return torch.tensor(rows, dtype=torch.float64)


def exact(S: int, D: int, base: float = 10000.0) -> Tensor:
    return sinusoidal_positional_encoding(S, D, base, dtype=torch.float64)


def test_the_rows_worked_out_by_hand() -> None:
    """B8: D = 4, S = 3, frequencies 1 and 0.01."""
    by_hand = [
        [0.0, 1.0, 0.0, 1.0],
        [0.8415, 0.5403, 0.0100, 0.99995],
        [0.9093, -0.4161, 0.0200, 0.9998],
    ]
    table = sinusoidal_positional_encoding(3, 4)
    torch.testing.assert_close(table, torch.tensor(by_hand), rtol=0, atol=5e-5)


@given(lengths, even_widths, bases)
@few
def test_equals_the_formula_spelt_out(S: int, D: int, base: float) -> None:
    """B3: every entry, at any length, width and base."""
    torch.testing.assert_close(exact(S, D, base), spelt_out(S, D, base), rtol=0, atol=1e-12)


@pytest.mark.parametrize("D", [2, 64, 512])
def test_far_positions_are_as_exact_as_near_ones(D: int) -> None:
    """B3: angles are float64, so a float32 table is right to its last bit near position 10,000."""
    table = sinusoidal_positional_encoding(10_000, D)
    assert table.dtype == torch.float32
    far = torch.tensor([math.sin(9999 * 10000.0 ** (-c / D)) for c in range(0, D, 2)])
    torch.testing.assert_close(table[9999, 0::2], far, rtol=0, atol=1e-7)
    assert torch.isfinite(table).all()


@given(lengths, even_widths, bases)
@few
def test_every_row_has_the_same_norm(S: int, D: int, base: float) -> None:
    """B9: sqrt(D/2), because each pair lies on the unit circle."""
    norms = exact(S, D, base).norm(dim=1)
    torch.testing.assert_close(norms, torch.full_like(norms, math.sqrt(D / 2)))


@given(st.integers(2, 60), even_widths, bases, st.data())
@few
def test_dot_products_depend_on_the_distance_alone(
    S: int, D: int, base: float, data: st.DataObject
) -> None:
    """B9: the Gram matrix is Toeplitz, with D/2 on its diagonal."""
    gram = (table := exact(S, D, base)) @ table.T
    k = data.draw(st.integers(0, S - 1), label="distance")
    along = gram.diagonal(k)
    torch.testing.assert_close(along, along[:1].expand_as(along), rtol=0, atol=1e-10)
    torch.testing.assert_close(gram.diagonal(), torch.full((S,), D / 2, dtype=gram.dtype))


def test_a_shift_is_one_rotation_of_every_pair() -> None:
    """B9: PE[p + k] is PE[p] with pair i turned by k * w_i, to 1e-10."""
    S, D = 40, 12
    pairs = torch.view_as_complex(exact(S, D).reshape(S, D // 2, 2).flip(-1))  # cos + i sin
    for k in (1, 5, 10):
        turn = pairs[k]  # position 0 is 1 + 0i
        torch.testing.assert_close(pairs[k:], pairs[:-k] * turn, rtol=0, atol=1e-10)


@pytest.mark.parametrize(("D", "wavelength"), [(64, 47117), (512, 60611)])
def test_the_first_pair_is_the_fast_one(D: int, wavelength: int) -> None:
    """B9: pair 0 turns one radian a step; the last one's wave is long, but not 2 pi * 10000."""
    row = exact(2, D)[1]
    turns = torch.atan2(row[0::2], row[1::2])
    assert turns[0].item() == pytest.approx(1.0)
    assert (turns.diff() < 0).all()
    assert 2 * math.pi / turns[-1].item() == pytest.approx(wavelength, abs=1)


def test_positions_are_told_apart() -> None:
    """B9: 1000 positions give 1000 different rows."""
    assert len(sinusoidal_positional_encoding(1000, 64).unique(dim=0)) == 1000


def test_more_positions_change_no_row_and_another_base_does() -> None:
    """B3: base and maximum length are different things."""
    short, long = exact(7, 6), exact(5000, 6)
    assert torch.equal(short, long[:7])
    assert not torch.allclose(short, exact(7, 6, base=5000.0))


def test_is_the_same_each_time_and_follows_the_default_type() -> None:
    """B3: bit-identical on repeat; float32 unless asked."""
    assert torch.equal(sinusoidal_positional_encoding(9, 8), sinusoidal_positional_encoding(9, 8))
    assert sinusoidal_positional_encoding(9, 8).dtype == torch.get_default_dtype()
    assert sinusoidal_positional_encoding(0, 8).shape == (0, 8)


@given(st.integers(1, 4), lengths, even_widths)
@few
def test_the_module_adds_the_table_to_every_sequence(B: int, S: int, D: int) -> None:
    """B3: forward gives x + table, at every length up to the maximum, and leaves x alone."""
    x = torch.randn(B, S, D)
    before = x.clone()
    out = SinusoidalPositionalEncoding(D, max_seq_len=60)(x)
    assert torch.equal(out, x + spelt_out(S, D).float())
    assert torch.equal(x, before)


def test_the_table_is_a_buffer_that_is_not_saved() -> None:
    """B3: not trained, moved by `.to()`, absent from checkpoints: those fit any maximum length."""
    module = SinusoidalPositionalEncoding(6, max_seq_len=9)
    assert dict(module.named_buffers()).keys() == {"pe"}
    assert module.pe.shape == (1, 9, 6)
    assert not list(module.parameters())
    SinusoidalPositionalEncoding(6, max_seq_len=50).load_state_dict(module.state_dict())
    assert copy.deepcopy(module).to("meta").pe.device.type == "meta"
    assert module.double()(torch.zeros(1, 2, 6, dtype=torch.float64)).dtype == torch.float64


def test_get_encoding_gives_a_copy_of_the_first_rows() -> None:
    """B3: (S, D), and writing to it does not reach the module."""
    module = SinusoidalPositionalEncoding(6, max_seq_len=9)
    rows = module.get_encoding(4)
    assert torch.equal(rows, sinusoidal_positional_encoding(4, 6))
    rows.zero_()
    assert torch.equal(module.get_encoding(4), sinusoidal_positional_encoding(4, 6))
    assert module.get_encoding(9).shape == (9, 6)


@pytest.mark.parametrize("d_model", [7, 1, 0, -2])
def test_a_width_without_whole_pairs_is_refused(d_model: int) -> None:
    """B3: by the function and by the module, naming the value."""
    said = f"d_model={d_model}: expected a positive even number"
    with pytest.raises(ValueError, match=said):
        sinusoidal_positional_encoding(3, d_model)
    with pytest.raises(ValueError, match=said):
        SinusoidalPositionalEncoding(d_model)


@pytest.mark.parametrize("base", [1.0, 0.0, -10.0, math.nan, math.inf])
def test_a_base_that_gives_no_slower_waves_is_refused(base: float) -> None:
    """B3: naming the value and what the paper uses."""
    with pytest.raises(ValueError, match=f"base={base}: expected a finite number above 1"):
        sinusoidal_positional_encoding(3, 4, base)


def test_a_negative_length_is_refused() -> None:
    """B3: with the name of the argument, instead of the message of `arange`."""
    with pytest.raises(ValueError, match="seq_len=-1: expected a number of positions, 0 or more"):
        sinusoidal_positional_encoding(-1, 4)


def test_sequences_beyond_the_table_are_refused() -> None:
    """B3: S > max is neither clipped nor a broadcasting error far away."""
    module = SinusoidalPositionalEncoding(6, max_seq_len=9)
    said = "the sequence length is 10: expected at most max_seq_len = 9"
    with pytest.raises(ValueError, match=said):
        module(torch.zeros(2, 10, 6))
    with pytest.raises(ValueError, match=said):
        module.get_encoding(10)


@pytest.mark.parametrize("shape", [(5, 6), (2, 5, 1), (2, 5, 7), (1, 2, 5, 6)])
def test_an_x_that_would_only_broadcast_is_refused(shape: tuple[int, ...]) -> None:
    """B3: a width of 1 or a missing batch axis would be stretched to fit, silently."""
    with pytest.raises(ValueError, match=r"x has shape .*: expected \(B, S, D\) with D = 6"):
        SinusoidalPositionalEncoding(6)(torch.zeros(shape))


@pytest.mark.parametrize("B", [1, 4, 16])
@pytest.mark.parametrize("S", [1, 16, 128, 512])
def test_batches_and_lengths_of_every_usual_size(B: int, S: int) -> None:
    """B3: the shape of x comes back, and the table was added to each sequence."""
    x = torch.randn(B, S, 64)
    out = SinusoidalPositionalEncoding(64, max_seq_len=512)(x)
    assert out.shape == x.shape
    table = sinusoidal_positional_encoding(S, 64).expand_as(x)
    torch.testing.assert_close(out - x, table, rtol=0, atol=1e-6)


def test_an_addition_by_hand() -> None:
    """B8: two sequences of three positions, D = 4, each entry of ones and of twos written out."""
    x = torch.tensor([1.0, 2.0])[:, None, None].expand(2, 3, 4)
    row = [
        [1.0, 2.0, 1.0, 2.0],
        [1.8415, 1.5403, 1.0100, 1.99995],
        [1.9093, 0.5839, 1.0200, 1.9998],
    ]
    by_hand = torch.tensor([row, [[v + 1 for v in r] for r in row]])
    out = SinusoidalPositionalEncoding(4, max_seq_len=3)(x)
    torch.testing.assert_close(out, by_hand, rtol=0, atol=6e-5)


def test_eight_columns_fall_by_decades() -> None:
    """B8: at D = 8 the four pairs turn by 1, 0.1, 0.01 and 0.001 radians per position."""
    w = sinusoidal_frequencies(8)
    torch.testing.assert_close(w, torch.tensor([1, 0.1, 0.01, 0.001], dtype=torch.float64))


def test_the_last_frequency_is_not_one_over_the_base() -> None:
    """B3: it is base^(-(D-2)/D), a little faster."""
    assert sinusoidal_frequencies(512)[-1].item() == pytest.approx(10000 ** (-510 / 512))
    assert sinusoidal_frequencies(512)[-1].item() > 1.03e-4


def test_the_difference_of_two_rows_depends_on_more_than_their_distance() -> None:
    """B8: the vector does; its norm and the dot product do not."""
    table = exact(40, 12)
    near, far = table[5] - table[2], table[35] - table[32]
    assert (near - far).abs().max() > 0.5
    torch.testing.assert_close(near.norm(), far.norm())


@given(lengths, even_widths, bases)
@few
def test_concatenated_columns_are_the_interleaved_ones_reordered(
    S: int, D: int, base: float
) -> None:
    """B3: column 2i + r of the one is column r * D/2 + i of the other."""
    together = sinusoidal_positional_encoding(S, D, base, layout="concatenated")
    apart = sinusoidal_positional_encoding(S, D, base)
    for i in range(D // 2):
        assert torch.equal(together[:, i], apart[:, 2 * i])
        assert torch.equal(together[:, D // 2 + i], apart[:, 2 * i + 1])


@given(lengths, even_widths, st.sampled_from(LAYOUTS))
@few
def test_an_odd_width_may_be_padded(S: int, D: int, layout: str) -> None:
    """B3: whole pairs, of the frequencies of their own number, and a column of zeros."""
    odd = sinusoidal_positional_encoding(S, D + 1, layout=layout, odd="pad")
    assert torch.equal(odd[:, :D], sinusoidal_positional_encoding(S, D, layout=layout))
    assert torch.equal(odd[:, D], torch.zeros(S))
    module = SinusoidalPositionalEncoding(D + 1, 60, layout=layout, odd="pad")
    assert torch.equal(module.get_encoding(S), odd)


def test_padding_changes_no_even_width() -> None:
    """B3: nor does it make a table out of a single column."""
    assert torch.equal(sinusoidal_positional_encoding(5, 6, odd="pad"), exact(5, 6).float())
    with pytest.raises(ValueError, match="d_model=1: expected"):
        sinusoidal_positional_encoding(5, 1, odd="pad")


def test_the_table_alone_has_an_axis_for_the_batch() -> None:
    """B3: with output "table" x gives only its length: (1, S, D)."""
    module = SinusoidalPositionalEncoding(6, max_seq_len=9, output="table")
    out = module(torch.randn(4, 5, 6))
    assert torch.equal(out, sinusoidal_positional_encoding(5, 6).unsqueeze(0))


def test_the_base_of_the_module_is_not_its_length() -> None:
    """B3: another base gives another table, another maximum the same rows."""
    module = SinusoidalPositionalEncoding(6, max_seq_len=9, base=500.0)
    assert torch.equal(module.get_encoding(9), exact(9, 6, base=500.0).float())
    assert torch.equal(SinusoidalPositionalEncoding(6, 50).get_encoding(9), exact(9, 6).float())


def test_each_sequence_may_have_positions_of_its_own() -> None:
    """B3: rows by position_ids, different in each sequence; decoding steps are the prefill's."""
    module = SinusoidalPositionalEncoding(6, max_seq_len=9)
    x = torch.randn(2, 4, 6)
    ids = torch.tensor([[0, 0, 0, 1], [5, 6, 7, 8]])
    table = sinusoidal_positional_encoding(9, 6)
    assert torch.equal(module(x, ids), x + table[ids])
    steps = [module(x[:, s : s + 1], torch.full((2, 1), s)) for s in range(4)]
    assert torch.equal(torch.cat(steps, dim=1), module(x))


@pytest.mark.parametrize(
    ("ids", "error", "said"),
    [
        ([[0, 9, 1]], ValueError, r"position_ids holds 0 ... 9: expected positions from 0 to 8"),
        ([[0, -1, 1]], ValueError, r"position_ids holds -1 ... 1: expected positions from 0"),
        ([0, 1, 2], ValueError, r"position_ids has shape \(3,\): expected \(B, S\) = \(1, 3\)"),
        (
            [[0.0, 1.0, 2.0]],
            TypeError,
            "position_ids has dtype torch.float32: expected torch.int64",
        ),
    ],
)
def test_positions_that_do_not_exist_are_refused(
    ids: list[int], error: type[Exception], said: str
) -> None:
    """B3: out of range, of another shape or type, naming the values."""
    module = SinusoidalPositionalEncoding(6, max_seq_len=9)
    with pytest.raises(error, match=said):
        module(torch.zeros(1, 3, 6), torch.tensor(ids))


def test_a_table_may_grow_on_demand() -> None:
    """B3: "extend" answers longer sequences with the same rows, and keeps one table, not many."""
    module = SinusoidalPositionalEncoding(6, max_seq_len=9, beyond="extend").double()
    out = module(torch.zeros(1, 20, 6, dtype=torch.float64))
    torch.testing.assert_close(out[0], exact(20, 6), rtol=0, atol=1e-7)
    assert module.max_seq_len == module.pe.shape[1] == 40
    assert module.pe.dtype == torch.float64
    assert dict(module.named_buffers()).keys() == {"pe"}
    kept = module.pe
    module(torch.zeros(1, 40, 6, dtype=torch.float64))
    assert module.pe is kept
    row = module(torch.zeros(1, 1, 6, dtype=torch.float64), torch.tensor([[99]]))
    torch.testing.assert_close(row[0, 0], exact(100, 6)[99], rtol=0, atol=1e-7)


def test_a_grown_table_stays_on_the_device_of_the_module() -> None:
    """B3: the meta device stands for any other than the default one."""
    module = SinusoidalPositionalEncoding(6, max_seq_len=9, beyond="extend").to("meta")
    assert module(torch.zeros(2, 20, 6, device="meta")).device.type == "meta"
    assert module.pe.device.type == "meta"


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ({"layout": "reversed"}, "layout='reversed': expected one of 'interleaved', 'concat"),
        ({"odd": "cut"}, "odd='cut': expected one of 'error', 'pad'"),
        ({"output": "add"}, "output='add': expected one of 'sum', 'table'"),
        ({"beyond": "wrap"}, "beyond='wrap': expected one of 'error', 'extend'"),
    ],
)
def test_an_unknown_option_is_refused(option: dict[str, Any], expected: str) -> None:
    """B3: naming those that exist."""
    with pytest.raises(ValueError, match=expected):
        SinusoidalPositionalEncoding(6, **option)


def test_an_x_of_integers_is_refused() -> None:
    """B3: tokens in place of their embeddings would be made floats by the sum."""
    with pytest.raises(TypeError, match=r"x has dtype torch.int64: expected a floating-point type"):
        SinusoidalPositionalEncoding(6)(torch.zeros(1, 2, 6, dtype=torch.int64))
