"""What is said of tables, against closed forms and against each other (B9)."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from attnlab.references.analysis import (
    by_distance,
    dot_product_distance,
    encoding_statistics,
    frequency_table,
    relative_position_matrix,
    uniqueness,
)
from attnlab.references.positional import (
    SinusoidalPositionalEncoding,
    sinusoidal_positional_encoding,
)

few = settings(max_examples=20, deadline=None)
LAYOUTS = ["interleaved", "concatenated"]
SIZES = [(4, 3), (64, 128), (768, 1024), (512, 5000)]  # (D, S): tiny, small, GPT-2's, original


def table(D: int, S: int, layout: str = "interleaved", base: float = 10000.0) -> Tensor:
    return sinusoidal_positional_encoding(S, D, base, layout=layout, dtype=torch.float64)


def frequencies(D: int, base: float = 10000.0) -> list[float]:
    return [base ** (-2 * i / D) for i in range(D // 2)]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("D", "S"), [(64, 128), (768, 1024)])
@pytest.mark.parametrize("k", [1, 5, 10, 50])
def test_a_shift_is_a_rotation(D: int, S: int, k: int, layout: str) -> None:
    """B9: M_k rebuilds every row k later to 1e-10, in both layouts."""
    found = relative_position_matrix(table(D, S, layout), k, layout)
    assert found.matrix.shape == (D, D)
    assert found.error < 1e-10


@pytest.mark.parametrize(("D", "S", "k"), [(4, 3, 1), (4, 3, 2), (512, 5000, 50)])
def test_a_shift_is_a_rotation_at_the_other_sizes(D: int, S: int, k: int) -> None:
    """B9: the tiny table, and the paper's, where positions reach 4999."""
    assert relative_position_matrix(table(D, S), k).error < 1e-10


def test_the_rotation_worked_out_by_hand() -> None:
    """B9: D = 4, k = 1: one block turns by 1 radian, the other by 0.01."""
    c, s, c2, s2 = math.cos(1), math.sin(1), math.cos(0.01), math.sin(0.01)
    by_hand = [[c, s, 0, 0], [-s, c, 0, 0], [0, 0, c2, s2], [0, 0, -s2, c2]]
    found = relative_position_matrix(table(4, 3), 1)
    torch.testing.assert_close(found.matrix, torch.tensor(by_hand, dtype=torch.float64))


@given(st.integers(1, 12), st.integers(2, 40), st.sampled_from([2.0, 100.0, 1e4, 5e5]), st.data())
@few
def test_it_is_block_diagonal_and_orthogonal(
    pairs: int, S: int, base: float, data: st.DataObject
) -> None:
    """B9: 2 x 2 blocks, M^T M = 1, M_k = M_1^k, with the angles k * w_i of the formula."""
    D, k = 2 * pairs, data.draw(st.integers(0, S - 1), label="k")
    pe = table(D, S, base=base)
    matrix = relative_position_matrix(pe, k).matrix
    blocks = torch.block_diag(*torch.ones(pairs, 2, 2))
    assert not matrix[blocks == 0].any()
    torch.testing.assert_close(matrix.T @ matrix, torch.eye(D, dtype=torch.float64))
    steps = torch.linalg.matrix_power(relative_position_matrix(pe, 1).matrix, k)
    torch.testing.assert_close(matrix, steps, rtol=0, atol=1e-10)
    cosines = torch.tensor([math.cos(k * w) for w in frequencies(D, base)], dtype=torch.float64)
    torch.testing.assert_close(matrix.diagonal()[0::2], cosines, rtol=0, atol=1e-10)


def test_the_wrong_layout_shows() -> None:
    """B9: read in the other layout, columns of different frequencies are paired: no rotation."""
    assert relative_position_matrix(table(64, 128), 5, "concatenated").error > 0.1


def test_a_table_that_is_no_sinusoid_shows() -> None:
    """B9: no rotation fits a random table, and the error says so."""
    assert relative_position_matrix(torch.randn(128, 64), 5).error > 0.5


def test_the_error_is_that_of_the_table() -> None:
    """B9: a float32 table is off by its rounding; one wrong entry is the error."""
    assert 1e-9 < relative_position_matrix(table(64, 128).float(), 5).error < 1e-6
    pe = table(64, 128)
    pe[100, 0] += 0.25
    assert relative_position_matrix(pe, 5).error == pytest.approx(0.25, rel=0.1)


@pytest.mark.parametrize(("D", "S"), SIZES)
def test_dot_products_know_the_distance_alone(D: int, S: int) -> None:
    """B9: (S, S), symmetric, D/2 on the diagonal, Toeplitz, with the closed form in cosines."""
    gram = dot_product_distance(table(D, S))
    assert gram.shape == (S, S)
    assert (gram - gram.T).abs().max() < 1e-9
    mean, spread = by_distance(gram)
    assert spread.max() < 1e-9
    assert mean[0].item() == pytest.approx(D / 2, abs=1e-9)
    k = S // 2
    assert mean[k].item() == pytest.approx(sum(math.cos(k * w) for w in frequencies(D)), abs=1e-9)


@pytest.mark.parametrize(("D", "S"), [(4, 3), (64, 128), (768, 1024)])
def test_weights_end_that(D: int, S: int) -> None:
    """B9: after W_q and W_k the score of two positions depends on more than their distance."""
    torch.manual_seed(0)
    weights = torch.randn(2, D // 2, D, dtype=torch.float64) / math.sqrt(D)
    pe = table(D, S)
    scores = dot_product_distance(pe, *weights)
    assert by_distance(scores).spread.max() > 0.1
    assert not torch.allclose(scores, scores.T)
    torch.testing.assert_close(scores, (pe @ weights[0].T) @ (pe @ weights[1].T).T)


def test_one_weight_alone_may_be_given() -> None:
    """B9: the other stays the identity."""
    pe, weight = table(6, 5), torch.randn(6, 6, dtype=torch.float64)
    torch.testing.assert_close(dot_product_distance(pe, weight), pe @ weight.T @ pe.T)
    torch.testing.assert_close(dot_product_distance(pe, key_weight=weight), pe @ (pe @ weight.T).T)


def test_the_difference_of_two_rows_depends_on_more_than_the_distance() -> None:
    """B8, B9: rows one apart differ by different vectors of one and the same length."""
    steps = table(64, 128).diff(dim=0)
    torch.testing.assert_close(steps.norm(dim=1), steps.norm(dim=1)[:1].expand(127))
    assert (steps[0] - steps[1]).norm() > 0.5


def test_by_distance_gathers_diagonals() -> None:
    """B9: the mean and the spread of each, by hand."""
    mean, spread = by_distance(torch.tensor([[1.0, 5.0, 7.0], [0.0, 3.0, 4.0], [0.0, 0.0, 8.0]]))
    assert mean.tolist() == [4.0, 4.5, 7.0]
    assert spread.tolist() == [7.0, 1.0, 0.0]


@pytest.mark.parametrize(("D", "S"), SIZES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_statistics_of_a_sinusoid(D: int, S: int, layout: str) -> None:
    """B9: every norm is sqrt(D/2), entries lie in -1 ... 1, mean^2 + variance = 1/2."""
    found = encoding_statistics(table(D, S, layout))
    assert found.norm_expected == math.sqrt(D / 2)
    assert found.norm_min == pytest.approx(found.norm_expected, rel=1e-12)
    assert found.norm_max == pytest.approx(found.norm_expected, rel=1e-12)
    assert found.mean**2 + found.variance == pytest.approx(0.5, rel=1e-12)
    assert -1 <= found.min < found.max <= 1
    assert found.finite


def test_statistics_by_hand() -> None:
    """B9: each number of a small table; infinity is seen."""
    found = encoding_statistics(torch.tensor([[3.0, 4.0], [0.0, -1.0]]))
    assert (found.norm_min, found.norm_max, found.mean) == (1.0, 5.0, 1.5)
    assert (found.min, found.max) == (-1.0, 4.0)
    assert found.variance == pytest.approx((2.25 + 6.25 + 2.25 + 6.25) / 4)
    assert found.norms.tolist() == [5.0, 1.0]
    assert found.column_variances.tolist() == [2.25, 6.25]
    assert not encoding_statistics(torch.tensor([[1.0, math.inf]])).finite


@pytest.mark.parametrize(("D", "wavelength"), [(64, 47_117), (512, 60_611)])
def test_wavelengths(D: int, wavelength: int) -> None:
    """B9: from 2 pi, the fast end first, to 2 pi * 10000^((D-2)/D), which is not 2 pi * 10000."""
    waves = frequency_table(D)
    assert [wave.pair for wave in waves] == list(range(D // 2))
    assert waves[0].frequency == 1.0
    assert waves[0].wavelength == pytest.approx(2 * math.pi)
    assert waves[-1].wavelength == pytest.approx(wavelength, abs=1)
    for wave, w in zip(waves, frequencies(D), strict=True):
        assert wave.frequency == pytest.approx(w, rel=1e-12)
        assert wave.wavelength == pytest.approx(2 * math.pi / w, rel=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_wave_names_its_columns(layout: str) -> None:
    """B9: the columns of pair i hold sin(p w_i) and cos(p w_i), in either layout."""
    pe = table(12, 50, layout)
    p = torch.arange(50, dtype=torch.float64)
    for wave in frequency_table(12, layout=layout):
        sin, cos = wave.columns
        torch.testing.assert_close(pe[:, sin], (p * wave.frequency).sin())
        torch.testing.assert_close(pe[:, cos], (p * wave.frequency).cos())


def test_a_thousand_positions_differ() -> None:
    """B9: 1000 rows, all different; those one apart are nearest, at the distance of the formula."""
    found = uniqueness(table(64, 1000))
    assert found.distinct == 1000
    step = math.sqrt(sum(2 - 2 * math.cos(w) for w in frequencies(64)))
    assert found.nearest == pytest.approx(step, rel=1e-9)
    assert found.pair[1] - found.pair[0] == 1


def test_rows_that_return_are_found() -> None:
    """B9: with one pair of period 8, position 8 is position 0 again."""
    p = torch.arange(10, dtype=torch.float64) * (2 * math.pi / 8)
    found = uniqueness(torch.stack((p.sin(), p.cos()), dim=1).round(decimals=9))
    assert found.distinct == 8
    assert found.nearest == 0.0
    assert found.pair == (0, 8)


def test_a_large_table_is_finite() -> None:
    """B9: 10,000 positions at a width of 4096."""
    assert encoding_statistics(sinusoidal_positional_encoding(10_000, 4096)).finite


def test_the_module_of_the_small_size() -> None:
    """B9: B = 2, S = 32 under a maximum of 128 at D = 64; its own rows obey the same laws."""
    module = SinusoidalPositionalEncoding(64, max_seq_len=128)
    x = torch.zeros(2, 32, 64)
    assert encoding_statistics(module(x)[1]).norm_max == pytest.approx(math.sqrt(32), rel=1e-6)
    assert relative_position_matrix(module(x)[0], 10).error < 1e-5


@pytest.mark.parametrize("shape", [(3,), (2, 3, 4), (0, 4), (3, 0)])
def test_what_is_no_table_is_refused(shape: tuple[int, ...]) -> None:
    """B9: by every function, naming the shape."""
    pe = torch.zeros(shape)
    for call in (dot_product_distance, encoding_statistics, uniqueness):
        with pytest.raises(ValueError, match=r"pe has shape \(.*expected \(S, D\)"):
            call(pe)
    with pytest.raises(ValueError, match=r"pe has shape \(.*expected \(S, D\).* D even"):
        relative_position_matrix(pe, 0)


def test_an_odd_width_has_no_pairs() -> None:
    """B9: the rotation needs whole pairs, statistics do not."""
    with pytest.raises(ValueError, match=r"\(4, 7\): expected \(S, D\), .*D even"):
        relative_position_matrix(torch.zeros(4, 7), 1)
    assert encoding_statistics(torch.zeros(4, 7)).norm_max == 0.0


@pytest.mark.parametrize("k", [-1, 4, 9])
def test_an_offset_beyond_the_table_is_refused(k: int) -> None:
    """B9: negative ones too."""
    with pytest.raises(ValueError, match=f"k={k}: expected an offset from 0 to S - 1 = 3"):
        relative_position_matrix(table(4, 4), k)


def test_other_bad_arguments_are_refused() -> None:
    """B9: layouts, widths, bases, weights and matrices, by name and value."""
    pe = table(4, 3)
    with pytest.raises(ValueError, match="layout='mixed'"):
        relative_position_matrix(pe, 1, "mixed")
    with pytest.raises(ValueError, match="layout='mixed'"):
        frequency_table(4, layout="mixed")
    with pytest.raises(ValueError, match="d_model=5: expected a positive even"):
        frequency_table(5)
    with pytest.raises(ValueError, match=r"base=1\.0: expected a finite number above 1"):
        frequency_table(4, 1.0)
    with pytest.raises(ValueError, match=r"query_weight has shape \(4, 3\).*D = 4"):
        dot_product_distance(pe, torch.zeros(4, 3))
    with pytest.raises(ValueError, match=r"queries are 2 wide and keys 3"):
        dot_product_distance(pe, torch.zeros(2, 4), torch.zeros(3, 4))
    with pytest.raises(ValueError, match=r"matrix has shape \(3, 4\): expected a square"):
        by_distance(torch.zeros(3, 4))
    with pytest.raises(ValueError, match="pe has one row"):
        uniqueness(torch.zeros(1, 4))
