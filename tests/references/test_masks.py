"""Masks against masks spelt out position by position, and against PyTorch's own (A4)."""

import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from attention_scenes import few, normal, random_mask, sizes
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.attention.bias import causal_lower_right

from attnlab.references import masks
from attnlab.references.attention import masked_softmax

lengths = st.integers(0, 9)


def spelt_out(q_len: int, k_len: int, forbidden) -> Tensor:
    """(Sq, Sk), from a rule about the positions i of a query and j of a key."""
    rows = [[forbidden(i + k_len - q_len, j) for j in range(k_len)] for i in range(q_len)]
    return torch.tensor(rows, dtype=torch.bool).reshape(q_len, k_len)


@given(lengths, lengths)
@few
def test_causal_forbids_the_future(q_len: int, k_len: int) -> None:
    """A4: j > i, queries at the end of the keys, also where there are more queries than keys."""
    mask = masks.causal_mask(q_len, k_len)
    assert mask.shape == (1, 1, q_len, k_len)
    assert torch.equal(mask[0, 0], spelt_out(q_len, k_len, lambda i, j: j > i))


def test_causal_is_bottom_right() -> None:
    """A4: the mask that PyTorch calls `causal_lower_right`; one query sees all keys."""
    q, k, v = normal(2, 3, 4, 6), normal(2, 3, 7, 6), normal(2, 3, 7, 6)
    expected = F.scaled_dot_product_attention(q, k, v, attn_mask=causal_lower_right(4, 7))
    mask = masks.causal_mask(4, 7)
    found = F.scaled_dot_product_attention(q, k, v, attn_mask=~mask)
    torch.testing.assert_close(found, expected)
    assert not masks.causal_mask(1, 7).any()
    assert torch.equal(masks.causal_mask(5), masks.causal_mask(5, 5))


def test_a_causal_row_before_all_keys_is_empty() -> None:
    """A4: with Sq > Sk the first Sq - Sk queries may attend to nothing."""
    assert masks.causal_mask(5, 3)[0, 0].all(dim=-1).tolist() == [True, True, False, False, False]


@given(lengths, lengths, st.integers(1, 12), st.booleans())
@few
def test_a_window_counts_the_keys_it_sees(q_len: int, k_len: int, w: int, two: bool) -> None:
    """A4: w keys, the query's own among them; w - 1 steps back, and as far ahead if two-sided."""

    def forbidden(i: int, j: int) -> bool:
        return abs(i - j) >= w if two else not 0 <= i - j < w

    mask = masks.sliding_window_mask(q_len, k_len, window=w, two_sided=two)
    assert torch.equal(mask[0, 0], spelt_out(q_len, k_len, forbidden))


def test_windows_between_itself_and_everything() -> None:
    """A4: window 1 is the query alone, a window of Sk is causal; each late row sees w keys."""
    assert torch.equal(
        masks.sliding_window_mask(4, window=1)[0, 0], ~torch.eye(4, dtype=torch.bool)
    )
    assert torch.equal(masks.sliding_window_mask(3, 6, window=6), masks.causal_mask(3, 6))
    assert (~masks.sliding_window_mask(3, 9, window=4)).sum(dim=-1).eq(4).all()


@given(st.lists(st.integers(0, 6), min_size=1, max_size=4), st.integers(0, 6))
@few
def test_a_prefix_is_seen_by_all(prefix: list[int], q_len: int) -> None:
    """A4: causal, but for keys inside the prefix."""
    mask = masks.prefix_mask(torch.tensor(prefix), q_len, 6)
    assert mask.shape == (len(prefix), 1, q_len, 6)
    for b, length in enumerate(prefix):
        rule = spelt_out(q_len, 6, lambda i, j, n=length: j > i and j >= n)
        assert torch.equal(mask[b, 0], rule)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=4))
@few
def test_padding_stands_at_the_side_it_is_said_to(real: list[int]) -> None:
    """A4: keys beyond each length on the right; mirrored for the left."""
    right = masks.padding_mask(torch.tensor(real), 6)
    assert right.shape == (len(real), 1, 1, 6)
    assert right[:, 0, 0].tolist() == [[j >= n for j in range(6)] for n in real]
    left = masks.padding_mask(torch.tensor(real), 6, side="left")
    assert torch.equal(left, right.flip(-1))


def test_padding_of_ids_is_that_of_their_lengths() -> None:
    """A4: wherever the id is the padding's."""
    ids = torch.tensor([[5, 6, 0, 0], [7, 8, 9, 0]])
    assert torch.equal(masks.padding_mask_of(ids, 0), masks.padding_mask(torch.tensor([2, 3]), 4))


@given(st.lists(st.integers(0, 4), min_size=1, max_size=4))
@few
def test_packed_sequences_stand_on_the_diagonal(parts: list[int]) -> None:
    """A4: `torch.block_diag` of ones says what may be attended; positions begin anew."""
    segments = masks.segment_ids(parts)
    assert segments.shape == (1, sum(parts))
    allowed = torch.block_diag(*[torch.ones(n, n, dtype=torch.bool) for n in parts if n])
    if sum(parts):
        assert torch.equal(~masks.packed_mask(segments)[0, 0], allowed)
    restarted = list(itertools.chain.from_iterable(range(n) for n in parts))
    assert masks.segment_positions(segments)[0].tolist() == restarted


def test_packed_queries_and_keys_may_differ() -> None:
    """A4: cross attention between packed rows: segment by segment."""
    mask = masks.packed_mask(torch.tensor([[0, 0, 1]]), torch.tensor([[0, 1]]))
    assert mask[0, 0].tolist() == [[False, True], [False, True], [True, False]]


def test_masks_are_combined_by_or() -> None:
    """A4: forbidden by one is forbidden; shared axes grow; None forbids nothing."""
    causal, padding = masks.causal_mask(3, 5), masks.padding_mask(torch.tensor([2, 5]), 5)
    both = masks.combine(causal, None, padding)
    assert both is not None
    assert both.shape == (2, 1, 3, 5)
    for b, i, j in itertools.product(range(2), range(3), range(5)):
        assert both[b, 0, i, j] == (causal[0, 0, i, j] or padding[b, 0, 0, j])
    assert masks.combine() is None
    assert masks.combine(None, causal) is causal


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("finite", [False, True])
def test_bool_and_additive_say_the_same(dtype: torch.dtype, finite: bool) -> None:
    """A4: added to scores of its own type, it gives the weights of the boolean mask, and back."""
    mask, scores = random_mask(2, 1, 4, 5), normal(2, 3, 4, 5).to(dtype)
    additive = masks.to_additive(mask, dtype, finite=finite)
    assert additive.dtype == dtype
    assert additive.isfinite().all() == finite
    assert torch.equal(masks.to_boolean(additive), mask)
    expected = (scores + additive).softmax(dim=-1)
    torch.testing.assert_close(masked_softmax(scores, mask), expected)


@given(sizes(5))
@few
def test_weights_are_those_of_pytorch_with_the_opposite_mask(n: list[int]) -> None:
    """A4: `F.scaled_dot_product_attention` is given ~mask."""
    B, H, Sq, Sk, hd = n
    q, k, v = normal(B, H, Sq, hd), normal(B, H, Sk, hd), normal(B, H, Sk, hd)
    mask = random_mask(B, 1, Sq, Sk)
    found = masked_softmax(q @ k.mT / math.sqrt(hd), mask) @ v
    expected = F.scaled_dot_product_attention(q, k, v, attn_mask=~mask)
    torch.testing.assert_close(found, expected)


def test_an_empty_row_is_zeros_and_its_gradients_too() -> None:
    """A4: no NaN forward or backward, also under anomaly detection; other rows are untouched."""
    scores, mask = normal(2, 3, 4, 5).requires_grad_(), random_mask(2, 1, 4, 5)
    mask[1, 0, 2] = True
    with torch.autograd.set_detect_anomaly(True):
        weights = masked_softmax(scores, mask)
        (gradient,) = torch.autograd.grad(weights.square().sum(), scores)
    assert weights[1, :, 2].eq(0).all()
    assert gradient[1, :, 2].eq(0).all()
    assert gradient.isfinite().all()
    assert torch.equal(weights.masked_select(mask), torch.zeros(3 * int(mask.sum())).double())


def test_the_two_wrong_ways_to_an_empty_row() -> None:
    """A4: cleaned scores give forbidden keys weight; cleaned weights leave NaN in gradients."""
    scores = normal(1, 1, 1, 3).requires_grad_()
    additive = masks.to_additive(torch.ones(1, 1, 1, 3, dtype=torch.bool), torch.float64)
    before = torch.nan_to_num(scores + additive, neginf=0.0).softmax(-1)
    assert before.sum().item() == pytest.approx(1.0)
    after = torch.nan_to_num((scores + additive).softmax(-1))
    assert after.eq(0).all()
    (gradient,) = torch.autograd.grad(after.sum(), scores)
    assert gradient.isnan().all()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: masks.causal_mask(-1, 3), "q_len=-1, k_len=3: expected numbers of positions, 0"),
        (lambda: masks.causal_mask(2, -3), "q_len=2, k_len=-3: expected numbers of positions, 0"),
        (lambda: masks.sliding_window_mask(3, window=0), "window=0: expected a positive number"),
        (lambda: masks.sliding_window_mask(3, window=-2), "window=-2: expected a positive number"),
        (
            lambda: masks.prefix_mask(torch.tensor([[1]]), 3),
            r"prefix has shape \(1, 1\): expected \(B,\)",
        ),
        (
            lambda: masks.prefix_mask(torch.tensor([1, 4]), 3),
            r"prefix holds 1 \.\.\. 4: expected numbers from 0 to 3",
        ),
        (
            lambda: masks.padding_mask(torch.tensor([2, -1]), 3),
            r"lengths holds -1 \.\.\. 2: expected numbers from 0 to 3",
        ),
        (
            lambda: masks.padding_mask(torch.tensor(2), 3),
            r"lengths has shape \(\): expected \(B,\)",
        ),
        (
            lambda: masks.padding_mask(torch.tensor([2]), 3, side="top"),
            "side='top': expected 'left' or 'right'",
        ),
        (
            lambda: masks.padding_mask_of(torch.tensor([2]), 0),
            r"ids has shape \(1,\): expected \(B, S\)",
        ),
        (
            lambda: masks.packed_mask(torch.zeros(2, 3).long(), torch.zeros(1, 3).long()),
            r"segments has shape \(2, 3\), key_segments \(1, 3\): expected the same batch size",
        ),
        (lambda: masks.segment_ids([2, -1]), r"lengths=\[2, -1\]: expected numbers of positions"),
        (
            lambda: masks.combine(masks.causal_mask(3), masks.causal_mask(3, 4)),
            r"masks of shapes \(1, 1, 3, 3\), \(1, 1, 3, 4\): expected the same sizes",
        ),
        (
            lambda: masks.combine(masks.causal_mask(3), masks.causal_mask(3)[0, 0]),
            r"mask 1 has shape \(3, 3\): expected \(B, H, Sq, Sk\)",
        ),
        (
            lambda: masks.combine(masks.causal_mask(3), masks.causal_mask(3, device="meta")),
            "mask 1 is on meta: expected cpu, as mask 0",
        ),
        (
            lambda: masks.to_boolean(torch.tensor([0.0, -10000.0])),
            "additive holds -10000: expected only 0, -inf or the lowest number of torch.float32",
        ),
    ],
)
def test_values_that_make_no_mask_are_refused(call, said: str) -> None:
    """A4: naming the argument, its value and what is expected."""
    with pytest.raises(ValueError, match=said):
        call()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: masks.prefix_mask(torch.tensor([1.0]), 3), "prefix has dtype torch.float32"),
        (lambda: masks.padding_mask(torch.tensor([True]), 3), "lengths has dtype torch.bool"),
        (lambda: masks.padding_mask_of(torch.zeros(2, 3), 0), "ids has dtype torch.float32"),
        (lambda: masks.packed_mask(torch.zeros(2, 3)), "segments has dtype torch.float32"),
        (lambda: masks.segment_positions(torch.zeros(2, 3)), "segments has dtype torch.float32"),
        (lambda: masks.combine(torch.zeros(1, 1, 2, 2)), "mask 0 has dtype torch.float32"),
        (lambda: masks.to_additive(torch.zeros(2), torch.float32), "mask has dtype torch.float32"),
        (
            lambda: masks.to_additive(masks.causal_mask(2), torch.int64),
            "dtype=torch.int64: expected a floating-point type",
        ),
        (lambda: masks.to_boolean(masks.causal_mask(2)), "additive has dtype torch.bool"),
    ],
)
def test_types_that_make_no_mask_are_refused(call, said: str) -> None:
    """A4: an additive mask is never taken for a boolean one, nor the reverse."""
    with pytest.raises(TypeError, match=said):
        call()
