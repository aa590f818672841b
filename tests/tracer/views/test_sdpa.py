"""The fused attention, step by step: the same result from the same arguments."""

import itertools

import pytest
import torch
import torch.nn.functional as F
from shots import x

from attnlab.tracer.views.attention import attention_steps

Q, K, V = x(2, 6, 5, 4), x(2, 6, 7, 4) + 0.5, x(2, 6, 7, 3)
MASKS = {
    "none": None,
    "bool": torch.ones(5, 7, dtype=torch.bool).tril(2),
    "float": x(2, 1, 5, 7),
    "barred": torch.zeros(5, 7).masked_fill(torch.ones(5, 7).triu(1).bool(), -torch.inf),
    "empty row": torch.ones(5, 7, dtype=torch.bool).tril(-1),
}


@pytest.mark.parametrize(("mask", "scale"), list(itertools.product(MASKS, [None, 0.1])), ids=str)
def test_the_shadow_makes_what_the_kernel_makes(mask, scale):
    """Masks of every kind, and a scale of one's own."""
    more = {"attn_mask": MASKS[mask], "scale": scale}
    truth = F.scaled_dot_product_attention(Q, K, V, **more)
    twin = attention_steps((Q, K, V), more)
    assert torch.allclose(twin.context, truth, atol=1e-5)
    assert twin.weights.shape == (2, 6, 5, 7)


def test_causal_with_other_lengths():
    """is_causal counts from the first key, also where there are more keys than queries."""
    twin = attention_steps((Q, K, V), {"is_causal": True})
    assert torch.allclose(
        twin.context, F.scaled_dot_product_attention(Q, K, V, is_causal=True), atol=1e-5
    )
    assert twin.allowed.sum() == 1 + 2 + 3 + 4 + 5


def test_grouped_heads():
    """With enable_gqa, neighbouring query heads share a key head."""
    k, v = K[:, :2], V[:, :2]
    truth = F.scaled_dot_product_attention(Q, k, v, enable_gqa=True)
    assert torch.allclose(
        attention_steps((Q, k, v), {"enable_gqa": True}).context, truth, atol=1e-5
    )


def test_what_the_mask_allows():
    """A boolean mask says so itself, an added one by its large negative numbers."""
    truth = torch.ones(5, 7, dtype=torch.bool).tril()
    assert torch.equal(attention_steps((Q, K, V, truth), {}).allowed, truth)
    got = attention_steps((Q, K, V, MASKS["barred"]), {}).allowed
    assert torch.equal(got, truth.expand_as(got))


def test_half_precision_is_computed_in_single():
    """Kernels accumulate in float32, so does the shadow."""
    q, k, v = Q.bfloat16(), K.bfloat16(), V.bfloat16()
    twin = attention_steps((q, k, v), {})
    assert twin.weights.dtype is torch.float32
    assert torch.allclose(twin.context, F.scaled_dot_product_attention(q, k, v).float(), atol=3e-2)
