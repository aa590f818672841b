"""RoPE beyond the training length: each recipe against its definition, pair by pair (B7)."""

import math
from typing import Any

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from attnlab.references.rotary import RotaryEmbedding, rotary_frequencies, rotary_table
from attnlab.references.rotary_scaling import (
    DynamicNTKScaling,
    LinearScaling,
    Llama3Scaling,
    LongRoPEScaling,
    NTKScaling,
    ProportionalScaling,
    RotaryScaling,
    YaRNScaling,
)

few = settings(max_examples=25, deadline=None)
dims = st.integers(2, 64).map(lambda pairs: 2 * pairs)
bases = st.sampled_from([100.0, 10000.0, 500000.0])
factors = st.floats(1, 64)
ALL: list[RotaryScaling] = [
    LinearScaling(4.0),
    NTKScaling(4.0),
    DynamicNTKScaling(4.0, 16),
    YaRNScaling(4.0, 256),
    Llama3Scaling(4.0, 256),
    LongRoPEScaling([1.0, 1.5, 2.0, 3.0], [1.0, 4.0, 8.0, 16.0], 4.0, 16),
    ProportionalScaling(0.5),
]


def frequencies(scaling: RotaryScaling, dim: int, base: float, length: int = 1) -> list[float]:
    found: list[float] = rotary_frequencies(dim, base, scaling=scaling, length=length).tolist()
    return found


def plain(dim: int, base: float) -> list[float]:
    return [base ** (-2 * i / dim) for i in range(dim // 2)]


@given(dims, bases, factors)
@few
def test_linear_scaling_interpolates_positions(dim: int, base: float, factor: float) -> None:
    """B7: position p with scaling is position p / factor without it."""
    expected = [w / factor for w in plain(dim, base)]
    assert frequencies(LinearScaling(factor), dim, base) == pytest.approx(expected)


def test_linear_scaling_reads_old_rows_at_multiples() -> None:
    """B7: position 4 p after scaling by 4 is position p before."""
    scaled = rotary_table(29, 8, scaling=LinearScaling(4.0))
    torch.testing.assert_close(scaled[::4], rotary_table(8, 8), rtol=0, atol=1e-12)


@given(dims, bases, factors)
@few
def test_ntk_scaling_is_another_base(dim: int, base: float, factor: float) -> None:
    """B7: base * factor^(D / (D - 2)); the fast end stays, the slow end is divided by factor."""
    expected = plain(dim, base * factor ** (dim / (dim - 2)))
    found = frequencies(NTKScaling(factor), dim, base)
    assert found == pytest.approx(expected)
    assert found[0] == 1
    assert found[-1] == pytest.approx(plain(dim, base)[-1] / factor)


@given(dims, bases, factors, st.integers(1, 5000))
@few
def test_dynamic_ntk_scaling_stretches_as_much_as_needed(
    dim: int, base: float, factor: float, length: int
) -> None:
    """B7: not at all within the training length."""
    M = 1024
    grown = max(1.0, factor * length / M - (factor - 1))
    expected = plain(dim, base * grown ** (dim / (dim - 2)))
    assert frequencies(DynamicNTKScaling(factor, M), dim, base, length) == pytest.approx(expected)
    if length <= M:
        assert frequencies(DynamicNTKScaling(factor, M), dim, base, length) == pytest.approx(
            plain(dim, base)
        )


@given(dims, bases, factors, st.booleans())
@few
def test_yarn_keeps_fast_pairs_and_interpolates_slow_ones(
    dim: int, base: float, factor: float, truncate: bool
) -> None:
    """B7: a linear ramp between the pairs that turn 32 times and once within the length."""
    M = 4096

    def pair(turns: float) -> float:
        return dim * math.log(M / (2 * math.pi * turns)) / (2 * math.log(base))

    low, high = pair(32), pair(1)
    if truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dim - 1)
    found = frequencies(YaRNScaling(factor, M, truncate=truncate), dim, base)
    for i, (w, new) in enumerate(zip(plain(dim, base), found, strict=True)):
        ramp = min(max((i - low) / (high - low), 0), 1)
        assert new == pytest.approx(w * (1 - ramp) + w / factor * ramp)
        turns = M * w / (2 * math.pi)
        if not truncate:
            assert turns < 32 or new == pytest.approx(w)
            assert turns > 1 or new == pytest.approx(w / factor)


def test_yarn_sharpens_the_scores() -> None:
    """B7: rotated queries and keys grow by 0.1 ln(factor) + 1, or DeepSeek's ratio of two."""
    assert YaRNScaling(1.0, 64).attention_factor == 1
    assert YaRNScaling(8.0, 64).attention_factor == pytest.approx(0.1 * math.log(8) + 1)
    both = YaRNScaling(8.0, 64, mscale=2.0, mscale_all_dim=1.0)
    ratio = (0.2 * math.log(8) + 1) / (0.1 * math.log(8) + 1)
    assert both.attention_factor == pytest.approx(ratio)
    x = torch.randn(1, 2, 3, 8, dtype=torch.float64)
    turned = RotaryEmbedding(8, scaling=YaRNScaling(8.0, 64)).rotate(x)
    torch.testing.assert_close(turned.norm(dim=-1), x.norm(dim=-1) * (0.1 * math.log(8) + 1))


@given(dims, bases, factors)
@few
def test_llama3_scaling_blends_by_turns(dim: int, base: float, factor: float) -> None:
    """B7: pairs that turn 4 times in the old length stay, less than once: divided, else between."""
    M = 8192
    found = frequencies(Llama3Scaling(factor, M), dim, base)
    for w, new in zip(plain(dim, base), found, strict=True):
        wavelength = 2 * math.pi / w
        if wavelength < M / 4:
            assert new == pytest.approx(w)
        elif wavelength > M:
            assert new == pytest.approx(w / factor)
        else:
            smooth = (M / wavelength - 1) / 3
            assert new == pytest.approx((1 - smooth) * w / factor + smooth * w)


@given(bases, st.integers(1, 200))
@example(10000.0, 100)
@example(10000.0, 101)
@few
def test_longrope_divides_each_pair_by_its_own_number(base: float, length: int) -> None:
    """B7: the long list where the sequence is longer than it was in training."""
    short, long = [1.0, 1.1, 1.2, 1.3], [1.0, 4.0, 9.0, 16.0]
    scaling = LongRoPEScaling(short, long, 8.0, 100)
    used = long if length > 100 else short
    expected = [w / f for w, f in zip(plain(8, base), used, strict=True)]
    assert frequencies(scaling, 8, base, length) == pytest.approx(expected)
    assert scaling.attention_factor == pytest.approx(math.sqrt(1 + math.log(8) / math.log(100)))


@given(dims, bases, st.floats(0, 1), factors)
@few
def test_proportional_scaling_stops_the_slow_pairs(
    dim: int, base: float, fraction: float, factor: float
) -> None:
    """B7: those that stand still score by contents alone."""
    found = frequencies(ProportionalScaling(fraction, factor), dim, base)
    turning = int(fraction * (dim // 2))
    assert found == pytest.approx(
        [w / factor for w in plain(dim, base)[:turning]] + found[turning:]
    )
    assert all(w == 0 for w in found[turning:])


@pytest.mark.parametrize("scaling", ALL, ids=lambda s: type(s).__name__)
def test_scores_still_depend_on_the_distance_alone(scaling: RotaryScaling) -> None:
    """B7: for positions that share a length, since that sets the frequencies of some recipes."""
    rope = RotaryEmbedding(8, scaling=scaling)
    q, k = (torch.randn(1, 2, 1, 8, dtype=torch.float64).expand(1, 2, 6, 8) for _ in range(2))
    scores = torch.matmul(*(t if n == 0 else t.mT for n, t in enumerate(rope(q, k, offset=40))))
    for diagonal in (-5, -1, 0, 2):
        along = scores.diagonal(diagonal, dim1=-2, dim2=-1)
        torch.testing.assert_close(along, along[..., :1].expand_as(along), rtol=0, atol=1e-10)


def test_the_length_is_the_highest_position() -> None:
    """B7: given by ids or by an offset; one far position stretches the whole batch."""
    rope = RotaryEmbedding(8, scaling=DynamicNTKScaling(2.0, 16))
    plain_rope = RotaryEmbedding(8)
    x = torch.randn(2, 1, 3, 8, dtype=torch.float64)
    near = torch.tensor([[0, 1, 2], [3, 4, 15]])
    far = torch.tensor([[0, 1, 2], [3, 4, 16]])
    assert torch.equal(rope.rotate(x, near), plain_rope.rotate(x, near))
    assert not torch.allclose(rope.rotate(x, far)[0], plain_rope.rotate(x, far)[0])
    ids = torch.arange(20, 23).expand(2, 3)
    assert torch.equal(rope.rotate(x, offset=20), rope.rotate(x, ids))


@pytest.mark.parametrize(
    ("recipe", "arguments", "said"),
    [
        (LinearScaling, {"factor": 0.5}, "factor=0.5: expected how many times longer, 1 or more"),
        (NTKScaling, {"factor": math.inf}, "factor=inf: expected"),
        (NTKScaling, {"factor": math.nan}, "factor=nan: expected"),
        (
            DynamicNTKScaling,
            {"factor": 2.0, "max_position_embeddings": 0},
            "max_position_embeddings=0: expected 1 or more",
        ),
        (
            YaRNScaling,
            {"factor": 2.0, "original_max_position_embeddings": 64, "beta_slow": 40.0},
            "beta_fast=32.0, beta_slow=40.0: expected numbers of turns",
        ),
        (
            Llama3Scaling,
            {"factor": 2.0, "original_max_position_embeddings": 64, "low_freq_factor": 4.0},
            "low_freq_factor=4.0, high_freq_factor=4.0: expected numbers of turns, 0 < low < high",
        ),
        (
            LongRoPEScaling,
            {
                "short_factor": [1.0],
                "long_factor": [1.0],
                "factor": 2.0,
                "original_max_position_embeddings": 1,
            },
            "original_max_position_embeddings=1: expected 2 or more",
        ),
        (ProportionalScaling, {"fraction": 1.5}, "fraction=1.5: expected a part of the pairs"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(
    recipe: type, arguments: dict[str, Any], said: str
) -> None:
    """B7: when the recipe is made, naming argument and value."""
    with pytest.raises(ValueError, match=said):
        recipe(**arguments)


def test_a_recipe_that_does_not_fit_the_head_is_refused_at_once() -> None:
    """B7: lists of another length, and a single pair, which has no slow end."""
    with pytest.raises(ValueError, match="3 and 3 numbers, expected one per pair, 4"):
        RotaryEmbedding(8, scaling=LongRoPEScaling([1.0] * 3, [2.0] * 3, 2.0, 64))
    with pytest.raises(ValueError, match="dim=2: expected at least 4"):
        RotaryEmbedding(2, scaling=NTKScaling(2.0))
