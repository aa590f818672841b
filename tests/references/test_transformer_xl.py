"""Transformer-XL: the shift, the score entry by entry, and the memory (B7)."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from attnlab.references.transformer_xl import (
    TransformerXLAttention,
    rel_shift,
    relative_sinusoids,
)

few = settings(max_examples=15, deadline=None)
different_sizes = st.lists(st.integers(1, 6), min_size=4, max_size=4, unique=True)


def build(H: int, hd: int, *, causal: bool = True) -> TransformerXLAttention:
    torch.manual_seed(10 * H + hd)
    module = TransformerXLAttention(H * hd, H, causal=causal).double()
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.5)
    return module


def normal(*shape: int) -> Tensor:
    torch.manual_seed(sum(shape))
    return torch.randn(shape, dtype=torch.float64)


@given(st.integers(1, 7), st.integers(1, 7), st.integers(1, 3))
@few
def test_the_shift_is_the_gather_loop(Q: int, K: int, B: int) -> None:
    """B7: out[i, j] = x[i, j + Q - 1 - i], with any axes before, more queries than keys too."""
    x = normal(B, 2, Q, Q + K - 1)
    shifted = rel_shift(x, K)
    assert shifted.shape == (B, 2, Q, K)
    for i in range(Q):
        for j in range(K):
            assert torch.equal(shifted[..., i, j], x[..., i, j + Q - 1 - i])
    assert torch.equal(rel_shift(x[0, 0], K), shifted[0, 0])


@given(st.integers(1, 7), st.integers(1, 7), st.integers(1, 4))
@few
def test_each_row_of_the_sinusoids_is_a_distance(Q: int, K: int, half: int) -> None:
    """B7: from K - 1 down to 1 - Q, sines first."""
    rows = relative_sinusoids(Q, K, 2 * half)
    assert rows.shape == (Q + K - 1, 2 * half)
    for c, distance in enumerate(range(K - 1, -Q, -1)):
        for i in range(half):
            angle = distance * 10000 ** (-2 * i / (2 * half))
            assert rows[c, i].item() == pytest.approx(math.sin(angle))
            assert rows[c, half + i].item() == pytest.approx(math.cos(angle))


def spelt_out(
    module: TransformerXLAttention, x: Tensor, memory: Tensor | None, mask: Tensor | None
) -> Tensor:
    """The four terms of the paper, one query and one key at a time."""
    B, Q, D = x.shape
    past = x if memory is None else torch.cat((memory, x), dim=1)
    K, hd = past.shape[1], module.head_dim
    rows = relative_sinusoids(Q, K, D)
    distances = dict(zip(range(K - 1, -Q, -1), rows, strict=True))
    context = torch.zeros(B, Q, D, dtype=x.dtype)
    for b in range(B):
        for h in range(module.num_heads):
            mine = slice(h * hd, (h + 1) * hd)
            for i in range(Q):
                q = module.q_proj.weight[mine] @ x[b, i]
                scores = torch.full((K,), -math.inf, dtype=x.dtype)
                for j in range(K):
                    distance = i + K - Q - j
                    hidden = mask is not None and mask[b, i, j]
                    if hidden or (module.causal and distance < 0):
                        continue
                    k = module.k_proj.weight[mine] @ past[b, j]
                    r = module.r_proj.weight[mine] @ distances[distance]
                    terms = q @ k + q @ r + module.u[h, 0] @ k + module.v[h, 0] @ r
                    scores[j] = terms / math.sqrt(hd)
                if scores.isfinite().any():
                    values = past[b] @ module.v_proj.weight[mine].T
                    context[b, i, mine] = scores.softmax(0) @ values
    return context @ module.out_proj.weight.T


@given(different_sizes, st.booleans(), st.booleans(), st.booleans())
@settings(max_examples=8, deadline=None)
def test_scores_are_the_four_terms_of_the_paper(
    sizes: list[int], causal: bool, remembers: bool, masked: bool
) -> None:
    """B7: with and without memory, mask and causality; a row without keys has a zero context."""
    B, Q, M, H = sizes
    module = build(H, 2, causal=causal)
    x, memory = normal(B, Q, 2 * H), normal(B, M, 2 * H) if remembers else None
    K = Q + M if remembers else Q
    mask = torch.rand(B, Q, K) < 0.4 if masked else None
    with torch.no_grad():
        expected = spelt_out(module, x, memory, mask)
        torch.testing.assert_close(module(x, memory, mask), expected, rtol=0, atol=1e-10)


def test_decoding_with_memory_is_the_whole_sequence_at_once() -> None:
    """B7: the inputs so far as memory; one token at a time and several."""
    module, x = build(3, 4), normal(2, 9, 12)
    whole = module(x)
    parts = [module(x[:, a:b], x[:, :a]) for a, b in ((0, 4), (4, 5), (5, 6), (6, 9))]
    torch.testing.assert_close(torch.cat(parts, dim=1), whole, rtol=0, atol=1e-12)


def test_where_a_segment_stands_does_not_matter() -> None:
    """B7: only distances do: the same words after another beginning, hidden, score the same."""
    module, x = build(3, 4), normal(1, 5, 12)
    beginning = normal(1, 6, 12)
    mask = torch.zeros(1, 5, 11, dtype=torch.bool)
    mask[:, :, :6] = True
    torch.testing.assert_close(module(x, beginning, mask), module(x), rtol=0, atol=1e-12)
    assert not torch.allclose(module(x, beginning), module(x))


def test_the_future_is_hidden() -> None:
    """B7: causal unless asked otherwise; a later word changes nothing before it."""
    x = normal(2, 6, 12)
    other = x.clone()
    other[:, 4] += 1
    changed = {}
    for causal in (True, False):
        module = build(3, 4, causal=causal)
        changed[causal] = (module(x) - module(other)).abs().amax(dim=(0, 2)) > 0
    assert changed[True].tolist() == [False] * 4 + [True] * 2
    assert changed[False].all()


def test_no_gradient_goes_into_the_memory() -> None:
    """B7: it belongs to the last segment; x and the weights get theirs."""
    module = build(3, 4)
    x, memory = normal(2, 3, 12).requires_grad_(), normal(2, 4, 12).requires_grad_()
    module(x, memory).sum().backward()
    assert memory.grad is None
    assert x.grad is not None
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in module.parameters())


def test_gradients_are_right_where_a_row_is_empty() -> None:
    """B7: they agree with finite differences, and no step of the backward pass makes a NaN."""
    module, x = build(1, 4, causal=False), normal(2, 3, 4)
    mask = torch.zeros(2, 3, 3, dtype=torch.bool)
    mask[1, 2] = True
    with torch.autograd.set_detect_anomaly(True):
        assert torch.autograd.gradcheck(lambda t: module(t, None, mask), x.requires_grad_())
    assert (module(x, None, mask)[1, 2] == 0).all()


def test_the_position_bias_is_what_no_content_explains() -> None:
    """B7: with queries of zero and no u, it is the whole score."""
    module = build(3, 4, causal=False)
    bias = module.position_bias(5, 7)
    assert bias.shape == (3, 5, 7)
    for i in range(5):
        for j in range(7):
            row = relative_sinusoids(5, 7, 12)[6 - (i + 2 - j)]
            r = (module.r_proj.weight @ row).view(3, 4)
            expected = (module.v[:, 0] * r).sum(dim=1) / 2
            torch.testing.assert_close(bias[:, i, j], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("x", "memory", "mask", "said"),
    [
        ((5, 8), None, None, r"x has shape \(5, 8\): expected \(B, S, D\) with D = 8"),
        ((2, 5, 7), None, None, r"x has shape .* with D = 8"),
        ((2, 5, 8), (1, 3, 8), None, r"memory has shape .*\(B, M, D\) with B = 2, D = 8"),
        ((2, 5, 8), (2, 3, 7), None, r"memory has shape .* with B = 2, D = 8"),
        ((2, 5, 8), None, (5, 5), r"mask has shape \(5, 5\): expected .* = \(2, 5, 5\)"),
        ((2, 5, 8), (2, 3, 8), (2, 5, 5), r"mask has shape .* \(B, S, M \+ S\) = \(2, 5, 8\)"),
    ],
)
def test_shapes_that_do_not_meet_are_refused(
    x: tuple[int, ...], memory: tuple[int, ...] | None, mask: tuple[int, ...] | None, said: str
) -> None:
    """B7: a mask must cover the memory too."""
    with pytest.raises(ValueError, match=said):
        TransformerXLAttention(8, 2)(
            torch.zeros(x),
            None if memory is None else torch.zeros(memory),
            None if mask is None else torch.zeros(mask, dtype=torch.bool),
        )


def test_a_float_mask_is_refused() -> None:
    """B7: with a message that says how to convert it."""
    with pytest.raises(TypeError, match=r"mask has dtype torch.float32: expected torch.bool.*-inf"):
        TransformerXLAttention(8, 2)(torch.zeros(1, 3, 8), None, torch.zeros(1, 3, 3))


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ((8, 3), "embed_dim=8, num_heads=3: expected .* a multiple of num_heads"),
        ((0, 1), "embed_dim=0, num_heads=1"),
        ((9, 3), "embed_dim=9: expected a positive even number"),
    ],
)
def test_widths_that_do_not_split_are_refused(sizes: tuple[int, int], said: str) -> None:
    """B7: into heads, or into sines and cosines."""
    with pytest.raises(ValueError, match=said):
        TransformerXLAttention(*sizes)


@pytest.mark.parametrize(("shape", "K"), [((4, 9), 7), ((10,), 7), ((4, 4), 0)])
def test_a_shift_of_other_columns_is_refused(shape: tuple[int, ...], K: int) -> None:
    """B7: one column too many or too few would shift every row askew."""
    with pytest.raises(ValueError, match=rf"expected \(..., Q, Q \+ K - 1\) with K = k_len = {K}"):
        rel_shift(torch.zeros(shape), K)


def test_sinusoids_of_no_length_are_refused() -> None:
    """B7: naming argument and value."""
    with pytest.raises(ValueError, match="q_len=0: expected 1 or more"):
        relative_sinusoids(0, 3, 4)
    with pytest.raises(ValueError, match="d_model=5: expected a positive even number"):
        relative_sinusoids(2, 3, 5)
