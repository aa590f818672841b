"""Rotary positions: the rotation spelt out, its laws, and weights carried between layouts (B7)."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from attnlab.references.positional import sinusoidal_positional_encoding
from attnlab.references.rotary import (
    LAYOUTS,
    RotaryEmbedding,
    rotary_frequencies,
    rotary_table,
    rotate_pairs,
    to_half_layout,
    to_interleaved_layout,
)

few = settings(max_examples=12, deadline=None)
layouts = st.sampled_from(LAYOUTS)
pairs = st.integers(1, 8)


def normal(*shape: int) -> Tensor:
    torch.manual_seed(sum(shape))
    return torch.randn(shape, dtype=torch.float64)


def spelt_out(x: Tensor, p: Tensor, rotary_dim: int, base: float, layout: str) -> Tensor:
    """Pair by pair in Python's own float64: x (B, H, S, hd), p (B, S)."""
    out = x.clone()
    for i in range(rotary_dim // 2):
        a, b = (2 * i, 2 * i + 1) if layout == "interleaved" else (i, i + rotary_dim // 2)
        w = base ** (-2 * i / rotary_dim)
        for n, row in enumerate(p.tolist()):
            for s, at in enumerate(row):
                c, d = math.cos(at * w), math.sin(at * w)
                out[n, :, s, a] = x[n, :, s, a] * c - x[n, :, s, b] * d
                out[n, :, s, b] = x[n, :, s, a] * d + x[n, :, s, b] * c
    return out


@given(st.integers(1, 4), pairs, st.integers(0, 3), layouts, st.booleans())
@few
def test_every_pair_turns_by_its_angle(
    S: int, turning: int, passing: int, layout: str, own: bool
) -> None:
    """B7: both conventions, all of a head or a part, positions from 0 or given."""
    hd, rd = 2 * (turning + passing), 2 * turning
    q, k = normal(3, 4, S, hd), normal(3, 2, S, hd)
    ids = torch.randint(5000, (3, S))
    rope = RotaryEmbedding(hd, rotary_dim=rd, base=500.0, layout=layout)
    p = ids if own else torch.arange(S).expand(3, S)
    for got, x in zip(rope(q, k, ids if own else None), (q, k), strict=True):
        expected = spelt_out(x, p, rd, 500.0, layout)
        torch.testing.assert_close(got, expected, rtol=0, atol=1e-11)


@given(st.integers(1, 6), pairs, st.integers(0, 3), layouts, st.integers(0, 5000))
@few
def test_norms_are_kept(S: int, turning: int, passing: int, layout: str, offset: int) -> None:
    """B7: of every query and key, at any offset."""
    hd = 2 * (turning + passing)
    q, k = normal(3, 4, S, hd), normal(3, 2, S, hd)
    rope = RotaryEmbedding(hd, rotary_dim=2 * turning, layout=layout)
    for turned, x in zip(rope(q, k, offset=offset), (q, k), strict=True):
        torch.testing.assert_close(turned.norm(dim=-1), x.norm(dim=-1), rtol=1e-12, atol=1e-12)


@given(pairs, st.integers(0, 3), layouts, st.integers(0, 4090), st.integers(0, 4090))
@few
def test_scores_depend_on_the_distance_alone(
    turning: int, passing: int, layout: str, near: int, far: int
) -> None:
    """B7: the same queries and keys at two places, up to position 4096, give the same scores."""
    hd = 2 * (turning + passing)
    q, k = normal(2, 3, 6, hd), normal(2, 3, 6, hd)
    rope = RotaryEmbedding(hd, rotary_dim=2 * turning, layout=layout)
    here, there = (a @ b.mT for a, b in (rope(q, k, offset=near), rope(q, k, offset=far)))
    torch.testing.assert_close(here, there, rtol=0, atol=1e-10)


def test_a_distance_does_matter() -> None:
    """B7: moving the key alone changes the score."""
    q, k = normal(1, 1, 1, 8), normal(1, 1, 1, 8)
    rope = RotaryEmbedding(8)
    scores = [(rope.rotate(q) @ rope.rotate(k, offset=n).mT).item() for n in range(4)]
    assert len({round(s, 6) for s in scores}) == 4
    assert scores[0] == pytest.approx((q @ k.mT).item())


def test_position_zero_turns_nothing() -> None:
    """B7: to the last bit."""
    q, k = normal(2, 3, 1, 8), normal(2, 3, 1, 8)
    assert all(torch.equal(a, b) for a, b in zip(RotaryEmbedding(8)(q, k), (q, k), strict=True))


def test_a_rotation_is_a_product_of_complex_numbers() -> None:
    """B7: pairs as numbers a + ib, times e^(i m w)."""
    x = normal(2, 3, 7, 8)
    angles = torch.outer(torch.arange(7.0, dtype=torch.float64), rotary_frequencies(8))
    turn = torch.polar(torch.ones_like(angles), angles)
    z = torch.view_as_complex(x.reshape(2, 3, 7, 4, 2)) * turn
    expected = torch.view_as_real(z).flatten(-2)
    torch.testing.assert_close(RotaryEmbedding(8).rotate(x), expected, rtol=0, atol=1e-12)
    # and in halves: real parts first, imaginary parts second
    half = RotaryEmbedding(8, layout="half").rotate(torch.cat((x[..., 0::2], x[..., 1::2]), -1))
    torch.testing.assert_close(half, torch.cat((z.real, z.imag), -1), rtol=0, atol=1e-12)


def test_prefill_and_decoding_turn_alike() -> None:
    """B7: steps of 3, 1 and 2 with an offset, or with ids, are the whole sequence at once."""
    q, k = normal(2, 4, 6, 8), normal(2, 2, 6, 8)
    rope = RotaryEmbedding(8)
    whole = rope(q, k)
    spans = ((0, 3), (3, 4), (4, 6))
    by_offset = [rope(q[:, :, a:b], k[:, :, a:b], offset=a) for a, b in spans]
    ids = torch.arange(6).expand(2, 6)
    by_ids = [rope(q[:, :, a:b], k[:, :, a:b], ids[:, a:b]) for a, b in spans]
    for steps in (by_offset, by_ids):
        for n in (0, 1):
            assert torch.equal(torch.cat([s[n] for s in steps], dim=2), whole[n])


def test_each_sequence_has_its_own_positions() -> None:
    """B7: padded on the left, a sequence is turned as it is without padding."""
    q, k = normal(2, 4, 5, 8), normal(2, 2, 5, 8)
    ids = torch.tensor([[0, 0, 0, 1, 2], [0, 1, 2, 3, 4]])
    rope = RotaryEmbedding(8)
    padded, alone = rope(q, k, ids), rope(q[:1, :, 2:], k[:1, :, 2:])
    assert all(torch.equal(a[:1, :, 2:], b) for a, b in zip(padded, alone, strict=True))
    shared = rope(q, k, torch.arange(5))
    assert all(torch.equal(a, b) for a, b in zip(shared, rope(q, k), strict=True))


def test_columns_beyond_the_rotary_part_pass_untouched() -> None:
    """B7: and the frequencies are those of the part, not of the head."""
    q, k = normal(2, 4, 5, 12), normal(2, 2, 5, 12)
    part = RotaryEmbedding(12, rotary_dim=8)(q, k)
    small = RotaryEmbedding(8)(q[..., :8], k[..., :8])
    for whole, turned, x in zip(part, small, (q, k), strict=True):
        assert torch.equal(whole[..., 8:], x[..., 8:])
        assert torch.equal(whole[..., :8], turned)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_angles_are_exact_in_half_types(dtype: torch.dtype) -> None:
    """B7: near 4096 too, where bfloat16 cannot tell neighbouring positions apart."""
    rope = RotaryEmbedding(64).to(dtype)
    x = normal(1, 2, 1, 64).to(dtype).expand(1, 2, 16, 64)
    turned = rope.rotate(x, offset=4090)
    exact = rope.rotate(x.double(), offset=4090)
    torch.testing.assert_close(turned.double(), exact, rtol=torch.finfo(dtype).eps, atol=1e-3)
    assert turned.dtype == dtype
    assert len(turned[0, 0].unique(dim=0)) == 16


def test_nothing_is_kept_that_a_type_could_spoil() -> None:
    """B7: no buffers and no parameters; a checkpoint holds nothing of it."""
    rope = RotaryEmbedding(8)
    assert not rope.state_dict()
    assert not list(rope.buffers())


@given(st.integers(0, 20), pairs, layouts)
@few
def test_the_table_is_the_unit_vector_turned(S: int, half: int, layout: str) -> None:
    """B7: row m is (1, 0, 1, 0, ...) at m; rows score sum_i cos((m - n) w_i), as sinusoids do."""
    table = rotary_table(S, 2 * half, layout=layout)
    x = torch.tensor([1.0, 0.0], dtype=torch.float64).repeat(half)
    if layout == "half":
        x = x.sort(descending=True).values
    turned = RotaryEmbedding(2 * half, layout=layout).rotate(x.expand(1, 1, S, -1))[0, 0]
    torch.testing.assert_close(table, turned, rtol=0, atol=1e-12)
    sinusoid = sinusoidal_positional_encoding(S, 2 * half, dtype=torch.float64)
    torch.testing.assert_close(table @ table.T, sinusoid @ sinusoid.T, rtol=0, atol=1e-10)


@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 3))
@few
def test_weights_carried_to_the_other_layout_score_the_same(
    H: int, turning: int, passing: int
) -> None:
    """B7: query and key projections with their biases, whole heads or a part of each."""
    hd, rd, S, D = 2 * (turning + passing), 2 * turning, 5, 7
    x = normal(2, S, D)
    weights = [(normal(H * hd, D), normal(H * hd)), (normal(H * hd, D).flip(0), normal(H * hd))]

    def scores(weights: list[tuple[Tensor, Tensor]], layout: str) -> Tensor:
        heads = [(x @ w.T + b).view(2, S, H, hd).transpose(1, 2) for w, b in weights]
        q, k = RotaryEmbedding(hd, rotary_dim=rd, layout=layout)(*heads)
        return q @ k.mT

    moved = [(to_half_layout(w, H, rd), to_half_layout(b, H, rd)) for w, b in weights]
    expected = scores(weights, "interleaved")
    torch.testing.assert_close(scores(moved, "half"), expected, rtol=0, atol=1e-10)
    back = [(to_interleaved_layout(w, H, rd), to_interleaved_layout(b, H, rd)) for w, b in moved]
    for (w, b), (old_w, old_b) in zip(back, weights, strict=True):
        assert torch.equal(w, old_w)
        assert torch.equal(b, old_b)
    if turning > 1:
        assert not torch.allclose(scores(weights, "half"), expected)


def test_gradients_are_those_of_finite_differences() -> None:
    """B7: through both conventions."""
    q, k = normal(1, 2, 3, 4).requires_grad_(), normal(1, 1, 3, 4).requires_grad_()
    for layout in LAYOUTS:
        rope = RotaryEmbedding(4, layout=layout)
        assert torch.autograd.gradcheck(lambda a, b, r=rope: r(a, b, offset=7), (q, k))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"head_dim": 7}, "head_dim=7: expected a positive even number"),
        ({"head_dim": 0}, "head_dim=0: expected a positive even number"),
        ({"head_dim": 8, "rotary_dim": 5}, "rotary_dim=5: expected a positive even number"),
        ({"head_dim": 8, "rotary_dim": 10}, "rotary_dim=10: expected at most head_dim = 8"),
        ({"head_dim": 8, "base": 1.0}, r"base=1.0: expected a finite number above 1"),
        ({"head_dim": 8, "layout": "neox"}, "layout='neox': expected one of 'interleaved', 'half'"),
    ],
)
def test_sizes_and_options_that_make_no_rotation_are_refused(
    options: dict[str, Any], said: str
) -> None:
    """B7: when the module is made, naming argument and value."""
    with pytest.raises(ValueError, match=said):
        RotaryEmbedding(**options)


@pytest.mark.parametrize(
    ("q", "k", "said"),
    [
        ((2, 5, 8), (2, 1, 5, 8), r"q has shape \(2, 5, 8\): expected \(B, H, S, hd\) with hd = 8"),
        ((2, 1, 5, 6), (2, 1, 5, 8), r"q has shape .* with hd = 8"),
        ((2, 1, 5, 8), (1, 1, 5, 8), r"k has shape .* with B = 2, S = 5, hd = 8"),
        ((2, 1, 5, 8), (2, 1, 6, 8), r"k has shape .* with B = 2, S = 5, hd = 8"),
    ],
)
def test_queries_and_keys_of_other_shapes_are_refused(
    q: tuple[int, ...], k: tuple[int, ...], said: str
) -> None:
    """B7: a key axis of another length would meet the angles of the queries."""
    with pytest.raises(ValueError, match=said):
        RotaryEmbedding(8)(torch.zeros(q), torch.zeros(k))


@pytest.mark.parametrize(
    ("ids", "offset", "error", "said"),
    [
        (None, -1, ValueError, "offset=-1: expected how many positions stand before the first"),
        ([[0, 1], [1, 2]], 3, ValueError, "offset=3 with position_ids: expected one of them"),
        ([[0, -1], [1, 2]], 0, ValueError, r"position_ids holds -1 ... 2: expected positions"),
        ([[0, 1]], 0, ValueError, r"position_ids has shape \(1, 2\): expected \(B, S\) = \(2, 2\)"),
        ([0, 1, 2], 0, ValueError, r"position_ids has shape \(3,\): expected \(S,\) = \(2,\)"),
        ([[0.0, 1.0], [1.0, 2.0]], 0, TypeError, "position_ids has dtype torch.float32"),
    ],
)
def test_positions_that_do_not_exist_are_refused(
    ids: Any, offset: int, error: type[Exception], said: str
) -> None:
    """B7: negative, fractional, of another shape, or said twice."""
    x = torch.zeros(2, 3, 2, 8)
    given_ids = None if ids is None else torch.tensor(ids)
    with pytest.raises(error, match=said):
        RotaryEmbedding(8)(x, x, given_ids, offset=offset)


def test_queries_of_integers_are_refused() -> None:
    """B7: they would come back rounded."""
    x = torch.zeros(2, 3, 2, 8, dtype=torch.int64)
    with pytest.raises(TypeError, match=r"q has dtype torch.int64: expected a floating-point"):
        RotaryEmbedding(8)(x, x)


@pytest.mark.parametrize(
    ("weight", "H", "rotary_dim", "said"),
    [
        ((7, 3), 2, None, r"weight has shape \(7, 3\): expected \(H\*hd, D\) or \(H\*hd,\)"),
        ((2, 4, 3), 2, None, r"weight has shape \(2, 4, 3\)"),
        ((6, 3), 2, None, "rotary_dim=3: expected a positive even number"),
        ((8, 3), 2, 6, "rotary_dim=6: expected at most 4, the width of a head"),
        ((8, 3), 0, None, "num_heads=0: expected 1 or more"),
    ],
)
def test_weights_that_make_no_heads_are_refused(
    weight: tuple[int, ...], H: int, rotary_dim: int | None, said: str
) -> None:
    """B7: by both conversions."""
    for convert in (to_half_layout, to_interleaved_layout):
        with pytest.raises(ValueError, match=said):
            convert(torch.zeros(weight), H, rotary_dim)


def test_functions_refuse_what_they_cannot_turn() -> None:
    """B7: odd widths, negative lengths, unknown layouts."""
    with pytest.raises(ValueError, match="dim=5: expected a positive even number"):
        rotary_frequencies(5)
    with pytest.raises(ValueError, match="seq_len=-1: expected 0 or more"):
        rotary_table(-1, 4)
    x = torch.zeros(2, 4)
    with pytest.raises(ValueError, match="layout='gptj': expected one of"):
        rotate_pairs(x, x[:, :2], x[:, :2], "gptj")
