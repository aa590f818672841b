"""Biases by distance: T5's buckets and ALiBi's slopes, spelt out and in their laws (B7)."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from attnlab.references.alibi import ALiBi, alibi_bias, alibi_slopes
from attnlab.references.relative import T5RelativeBias, relative_distance, t5_buckets

few = settings(max_examples=25, deadline=None)
heads = st.integers(1, 20)
buckets = st.sampled_from([(4, 9), (8, 64), (16, 128), (32, 128), (64, 300), (32, 17)])


def bucket(n: int, N: int, max_distance: int) -> int:
    """The bucket of distance n in one direction, by whole numbers alone.

    E + k for the largest k with E * (max/E)^(k/(N-E)) <= n, raised to the power N - E.
    """
    E = N // 2
    if n < E:
        return n
    rest = N - E
    k = 0
    while E + k + 1 < N and max_distance ** (k + 1) * E ** (rest - k - 1) <= n**rest:
        k += 1
    return E + k


@pytest.mark.parametrize("sizes", [(4, 9), (8, 64), (16, 128), (32, 128), (64, 300)])
def test_buckets_are_those_of_exact_arithmetic(sizes: tuple[int, int]) -> None:
    """B7: at every edge, in both directions and causal; no rounding moves a distance."""
    num_buckets, far = sizes
    distances = list(range(-far - 20, far + 21))
    found = t5_buckets(torch.tensor(distances), num_buckets, far).tolist()
    N = num_buckets // 2
    assert found == [bucket(abs(d), N, far) + (N if d > 0 else 0) for d in distances]
    causal = t5_buckets(torch.tensor(distances), num_buckets, far, bidirectional=False).tolist()
    assert causal == [bucket(max(-d, 0), num_buckets, far) for d in distances]


@given(buckets, st.booleans())
@few
def test_buckets_are_monotone_and_bounded(sizes: tuple[int, int], both: bool) -> None:
    """B7: further away is never a nearer bucket, and none is beyond the table."""
    num_buckets, far = sizes
    found = t5_buckets(-torch.arange(3000), num_buckets, far, bidirectional=both)
    assert (found.diff() >= 0).all()
    assert found.min() == 0
    assert found.max() == (num_buckets // 2 if both else num_buckets) - 1
    after = t5_buckets(torch.arange(1, 3000), num_buckets, far, bidirectional=both)
    assert torch.equal(after, found[1:] + num_buckets // 2 if both else torch.zeros_like(after))


def test_near_keys_have_a_bucket_each_and_far_ones_share() -> None:
    """B7: with 32 buckets and 128, the last one begins at 91."""
    found = t5_buckets(-torch.arange(140))
    assert found[:8].tolist() == list(range(8))
    assert (found == 15).nonzero()[0].item() == 91
    assert len(found.unique()) == 16


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
@few
def test_distances_are_key_minus_query(Q: int, K: int, offset: int) -> None:
    """B7: entry by entry; without an offset the last query stands at the last key."""
    found = relative_distance(Q, K, offset=offset)
    assert found.tolist() == [[j - (i + offset) for j in range(K)] for i in range(Q)]
    if Q <= K:
        assert torch.equal(relative_distance(Q, K), relative_distance(Q, K, offset=K - Q))


def spelt_out(module: T5RelativeBias, Q: int, K: int, offset: int) -> Tensor:
    """The bias entry by entry, its buckets by whole numbers alone."""
    table = module.relative_attention_bias.weight
    N = module.num_buckets // (2 if module.bidirectional else 1)
    bias = torch.zeros(module.num_heads, Q, K)
    for i in range(Q):
        for j in range(K):
            d = j - (i + offset)
            n = abs(d) if module.bidirectional else max(-d, 0)
            after = N if module.bidirectional and d > 0 else 0
            bias[:, i, j] = table[bucket(n, N, module.max_distance) + after]
    return bias


@given(heads, st.integers(1, 7), st.integers(0, 9), st.booleans())
@few
def test_t5_adds_a_number_per_bucket_and_head(H: int, Q: int, past: int, both: bool) -> None:
    """B7: to the scores of every sequence alike."""
    module = T5RelativeBias(H, 8, 16, bidirectional=both)
    scores = torch.randn(3, H, Q, past + Q)
    expected = spelt_out(module, Q, past + Q, past)
    assert torch.equal(module.bias(Q, past + Q), expected)
    assert torch.equal(module(scores), scores + expected)
    assert torch.equal(module(scores, offset=2), scores + spelt_out(module, Q, past + Q, 2))


@pytest.mark.parametrize(
    "module",
    [T5RelativeBias(3, 8, 16), T5RelativeBias(3, 8, 16, bidirectional=False), ALiBi(3)],
    ids=["both ways", "causal", "alibi"],
)
def test_a_step_of_decoding_gets_its_row_of_the_whole(module: nn.Module) -> None:
    """B7: queries at the end of the keys in a cache, one or three at a time."""
    whole = module.bias(9, 9)
    for a, b in ((0, 5), (5, 6), (6, 9)):
        assert torch.equal(module.bias(b - a, b), whole[:, a:b, :b])


def test_t5_gradients_count_the_pairs_of_each_bucket() -> None:
    """B7: a bucket that no pair falls into gets none."""
    module = T5RelativeBias(2, 8, 16)
    module(torch.zeros(3, 2, 4, 4)).sum().backward()
    grad = module.relative_attention_bias.weight.grad
    assert grad is not None
    counts = torch.bincount(t5_buckets(relative_distance(4, 4), 8, 16).flatten(), minlength=8)
    assert torch.equal(grad, 3.0 * counts.unsqueeze(1).expand(8, 2))
    assert (counts == 0).any()


def test_t5_rows_far_apart_are_told_apart_by_the_sign_alone() -> None:
    """B7: no index wraps round: what is before the query never gets the number of what is after."""
    module = T5RelativeBias(1, 8, 16)
    nn.init.zeros_(module.relative_attention_bias.weight)
    nn.init.ones_(module.relative_attention_bias.weight[4:])
    bias = module.bias(50, 50)[0]
    assert torch.equal(bias, torch.ones(50, 50).triu(1))


def paper_slopes(H: int) -> list[float]:
    """The recursive rule of the paper's code."""
    if math.log2(H).is_integer():
        start = 2 ** (-(2 ** -(math.log2(H) - 3)))
        return [start * start**h for h in range(H)]
    nearest = 2 ** math.floor(math.log2(H))
    return paper_slopes(nearest) + paper_slopes(2 * nearest)[0::2][: H - nearest]


@pytest.mark.parametrize("H", range(1, 21))
def test_alibi_slopes_are_those_of_the_paper(H: int) -> None:
    """B7: for powers of two and for every number between them."""
    slopes = alibi_slopes(H)
    torch.testing.assert_close(slopes, torch.tensor(paper_slopes(H), dtype=torch.float64))
    assert len(slopes.unique()) == H
    assert (slopes > 0).all()
    assert (slopes < 1).all()


def test_eight_heads_halve_from_one_to_the_next() -> None:
    """B7: 1/2, 1/4, ..., 1/256, as printed in the paper."""
    assert alibi_slopes(8).tolist() == [2.0**-h for h in range(1, 9)]


@given(heads, st.integers(1, 7), st.integers(0, 9), st.booleans())
@few
def test_alibi_subtracts_slope_times_distance(H: int, Q: int, past: int, causal: bool) -> None:
    """B7: entry by entry; the two forms agree for keys that are not after the query."""
    slopes = paper_slopes(H)
    expected = torch.tensor(
        [
            [
                [m * (j - i if causal else -abs(j - i)) for j in range(past + Q)]
                for i in range(past, past + Q)
            ]
            for m in slopes
        ],
        dtype=torch.float64,
    )
    bias = alibi_bias(H, Q, past + Q, causal=causal)
    torch.testing.assert_close(bias, expected)
    module = ALiBi(H, causal=causal)
    scores = torch.randn(3, H, Q, past + Q, dtype=torch.float64)
    torch.testing.assert_close(module(scores), scores + expected)
    torch.testing.assert_close(module.bias(Q, past + Q), expected)


@given(heads, st.integers(1, 9))
@few
def test_both_forms_give_the_same_weights_under_a_causal_mask(H: int, S: int) -> None:
    """B7: and so does a slope times the key's position, since softmax sees no constant."""
    future = torch.ones(S, S, dtype=torch.bool).triu(1)
    scores = torch.randn(1, H, S, S, dtype=torch.float64)
    by_key = alibi_slopes(H)[:, None, None] * torch.arange(S)
    weights = [
        (scores + bias).masked_fill(future, -math.inf).softmax(-1)
        for bias in (alibi_bias(H, S, S), alibi_bias(H, S, S, causal=True), by_key)
    ]
    torch.testing.assert_close(weights[0], weights[1])
    torch.testing.assert_close(weights[0], weights[2])


def test_alibi_makes_its_sum_in_float32() -> None:
    """B7: a half score is rounded once, after the sum."""
    scores = torch.randn(1, 12, 3, 300).to(torch.bfloat16)
    out = ALiBi(12)(scores)
    assert out.dtype == torch.bfloat16
    assert torch.equal(out, (scores.float() + alibi_bias(12, 3, 300).float()).to(torch.bfloat16))


@pytest.mark.parametrize("module", [T5RelativeBias(3), ALiBi(3)], ids=["t5", "alibi"])
@pytest.mark.parametrize(
    ("shape", "offset", "said"),
    [
        ((3, 4, 5), None, r"scores has shape \(3, 4, 5\): expected \(B, H, Q, K\) with H = 3"),
        ((2, 1, 4, 5), None, r"scores has shape .* with H = 3"),
        ((2, 3, 5, 4), None, "q_len=5, k_len=4: expected no more queries than keys, or an offset"),
        ((2, 3, 4, 5), -1, "offset=-1: expected how many positions stand before the first"),
    ],
)
def test_scores_that_would_only_broadcast_are_refused(
    module: nn.Module, shape: tuple[int, ...], offset: int | None, said: str
) -> None:
    """B7: one head's scores would be stretched over all, a negative offset would shift keys."""
    with pytest.raises(ValueError, match=said):
        module(torch.zeros(shape), offset=offset)
    with pytest.raises(TypeError, match=r"scores has dtype torch.int64"):
        module(torch.zeros(2, 3, 4, 5, dtype=torch.int64))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"num_heads": 0}, "num_heads=0: expected 1 or more"),
        ({"num_heads": 2, "num_buckets": 7}, "num_buckets=7: expected an even number from 4"),
        ({"num_heads": 2, "num_buckets": 2}, "num_buckets=2: expected an even number from 4"),
        (
            {"num_heads": 2, "num_buckets": 1, "bidirectional": False},
            "num_buckets=1: expected 2 or more",
        ),
        ({"num_heads": 2, "max_distance": 8}, "max_distance=8: expected more than 8"),
    ],
)
def test_buckets_that_cannot_be_filled_are_refused(options: dict[str, Any], said: str) -> None:
    """B7: when the module is made, naming argument and value."""
    with pytest.raises(ValueError, match=said):
        T5RelativeBias(**options)


def test_functions_refuse_what_has_no_distance() -> None:
    """B7: fractions, negative lengths, no heads."""
    with pytest.raises(TypeError, match=r"distance has dtype torch.float32: expected torch.int64"):
        t5_buckets(torch.zeros(3))
    with pytest.raises(ValueError, match="q_len=-1: expected 0 or more"):
        relative_distance(-1, 3)
    with pytest.raises(ValueError, match="num_heads=0: expected 1 or more"):
        alibi_slopes(0)
    with pytest.raises(ValueError, match="num_heads=0: expected 1 or more"):
        ALiBi(0)
