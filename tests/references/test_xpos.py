"""xPos: rotation and decay spelt out, and what is left of both in a score (B7)."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from attnlab.references.rotary import LAYOUTS, RotaryEmbedding, rotary_frequencies
from attnlab.references.xpos import XPos, xpos_decay, xpos_table

few = settings(max_examples=20, deadline=None)


def normal(*shape: int) -> Tensor:
    torch.manual_seed(sum(shape))
    return torch.randn(shape, dtype=torch.float64)


@given(st.integers(1, 8), st.sampled_from(LAYOUTS), st.integers(0, 5000), st.integers(0, 3000))
@few
def test_queries_grow_as_keys_shrink(pairs: int, layout: str, at: int, centre: int) -> None:
    """B7: RoPE times zeta^(p / 512) for a query, and divided by it for a key, pair by pair."""
    q, k = normal(2, 3, 1, 2 * pairs), normal(2, 1, 1, 2 * pairs)
    xpos = XPos(2 * pairs, layout=layout, centre=centre)
    plain = RotaryEmbedding(2 * pairs, layout=layout)(q, k, offset=at)
    got = xpos(q, k, offset=at)
    for i in range(pairs):
        columns = [2 * i, 2 * i + 1] if layout == "interleaved" else [i, i + pairs]
        scale = ((2 * i / (2 * pairs) + 0.4) / 1.4) ** ((at - centre) / 512)
        for turned, expected, sign in zip(got, plain, (1, -1), strict=True):
            torch.testing.assert_close(
                turned[..., columns], expected[..., columns] * scale**sign, rtol=1e-9, atol=1e-12
            )


@given(st.integers(1, 6), st.integers(0, 4000), st.integers(0, 4000), st.integers(0, 2000))
@few
def test_scores_depend_on_the_distance_alone(pairs: int, near: int, far: int, centre: int) -> None:
    """B7: the two scales leave zeta^(distance / 512), wherever both stand."""
    q, k = normal(2, 3, 6, 2 * pairs), normal(2, 3, 6, 2 * pairs)
    here = torch.matmul(*_query_and_key(XPos(2 * pairs), q, k, near))
    there = torch.matmul(*_query_and_key(XPos(2 * pairs, centre=centre), q, k, far))
    torch.testing.assert_close(here, there, rtol=1e-8, atol=1e-9)


def _query_and_key(xpos: XPos, q: Tensor, k: Tensor, offset: int) -> tuple[Tensor, Tensor]:
    q, k = xpos(q, k, offset=offset)
    return q, k.mT


def test_the_table_gives_the_scores_of_the_formula() -> None:
    """B7: sum_i zeta_i^(d/512) cos(d w_i), which falls with distance where RoPE's does not."""
    S, D = 600, 16
    scores = xpos_table(S, D) @ xpos_table(S, D, key=True).T
    d = torch.arange(S, dtype=torch.float64).unsqueeze(1)
    by_distance = (xpos_decay(D) ** (d / 512) * (d * rotary_frequencies(D)).cos()).sum(dim=1)
    torch.testing.assert_close(scores[:, 0], by_distance, rtol=0, atol=1e-9)
    torch.testing.assert_close(scores.diagonal(), torch.full((S,), D / 2, dtype=torch.float64))
    # Keys after the query weigh more than near ones do: xPos is for causal attention.
    assert scores.triu(400).max() > D / 2 > 2 * scores.tril(-400).max()


def test_decay_runs_from_fast_pairs_to_slow_ones() -> None:
    """B7: gamma / (1 + gamma) at the fast end, towards 1 at the slow end."""
    zeta = xpos_decay(64)
    assert zeta[0].item() == pytest.approx(0.4 / 1.4)
    assert (zeta.diff() > 0).all()
    assert zeta[-1] < 1


def test_prefill_and_decoding_turn_alike() -> None:
    """B7: cached keys fit later queries, since no scale depends on the present length."""
    q, k = normal(2, 4, 6, 8), normal(2, 2, 6, 8)
    xpos = XPos(8)
    whole = xpos(q, k)
    steps = [xpos(q[:, :, a:b], k[:, :, a:b], offset=a) for a, b in ((0, 3), (3, 4), (4, 6))]
    for n in (0, 1):
        torch.testing.assert_close(torch.cat([s[n] for s in steps], dim=2), whole[n])
    ids = torch.tensor([[0, 0, 0, 1, 2, 3], [0, 1, 2, 3, 4, 5]])
    padded, alone = xpos(q, k, ids), xpos(q[:1, :, 2:], k[:1, :, 2:])
    torch.testing.assert_close(padded[0][:1, :, 2:], alone[0])
    torch.testing.assert_close(padded[1][1:], whole[1][1:])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_types_hold_near_the_centre(dtype: torch.dtype) -> None:
    """B7: around position 4096 with the centre there, scores are right to the type's own error."""
    xpos = XPos(64, centre=4096).to(dtype)
    q, k = normal(1, 2, 16, 64).to(dtype), normal(1, 1, 16, 64).to(dtype)
    for half, exact in zip(
        xpos(q, k, offset=4090), xpos(q.double(), k.double(), offset=4090), strict=True
    ):
        assert half.dtype == dtype
        torch.testing.assert_close(half.double(), exact, rtol=torch.finfo(dtype).eps, atol=1e-3)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"head_dim": 7}, "dim=7: expected a positive even number"),
        ({"head_dim": 8, "base": 0.5}, r"base=0.5: expected a finite number above 1"),
        ({"head_dim": 8, "scale_base": 0.0}, r"scale_base=0.0: expected a number of positions"),
        ({"head_dim": 8, "gamma": -1.0}, r"gamma=-1.0: expected a number above 0"),
        ({"head_dim": 8, "layout": "neox"}, "layout='neox': expected one of"),
        ({"head_dim": 8, "centre": -1}, "centre=-1: expected 0 or more"),
    ],
)
def test_options_that_make_no_decay_are_refused(options: dict[str, Any], said: str) -> None:
    """B7: when the module is made, naming argument and value."""
    with pytest.raises(ValueError, match=said):
        XPos(**options)


def test_shapes_and_positions_are_checked_as_in_rope() -> None:
    """B7: naming argument, value and what is expected."""
    x = torch.zeros(2, 3, 2, 8)
    with pytest.raises(ValueError, match=r"q has shape .* with hd = 6"):
        XPos(6)(x, x)
    with pytest.raises(ValueError, match=r"k has shape .* with B = 2, S = 2, hd = 8"):
        XPos(8)(x, x[:, :, :1])
    with pytest.raises(ValueError, match="offset=-3: expected how many positions"):
        XPos(8)(x, x, offset=-3)
    with pytest.raises(ValueError, match="position_ids holds -1"):
        XPos(8)(x, x, torch.tensor([[0, 1], [-1, 0]]))
