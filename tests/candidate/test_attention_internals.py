"""What a forward pass shows of its scores and of the weights that mix values."""

import pytest
import torch
from modules import made, module
from torch.nn import functional as F

from attnlab.candidate.attention_internals import record_internals

Q, K, V = (torch.randn(2, 3, n, 4, generator=torch.manual_seed(n)) for n in (5, 7, 7))
SCORES = Q @ K.mT / 2


def seen(call):
    found = record_internals(call)
    return list(found["scores"].values()), list(found["sums"].values()), found["lowest"]


WAYS = {
    "a product": lambda w: w @ V,
    "einsum": lambda w: torch.einsum("bhqk,bhkd->bhqd", w, V),
    "einsum with the values first": lambda w: torch.einsum("bhkd,bhqk->bhqd", V, w),
}


@pytest.mark.parametrize("way", WAYS)
def test_weights_are_followed_to_the_product(way):
    """Through dropout, a mask and a cast, whatever the product is written as."""

    def call():
        weights = F.dropout(SCORES.softmax(-1), 0.5, training=False).masked_fill(SCORES > 9, 0.0)
        return WAYS[way](weights.to(torch.float32) / 0.8)

    scores, sums, lowest = seen(call)
    assert torch.equal(scores[0].view(SCORES.shape), SCORES)
    assert torch.allclose(sums[0].view(2, 3, 5), torch.full((2, 3, 5), 1.25))
    assert lowest >= 0.0


def test_a_session_is_asked_for_them():
    """The verb answers with plain tensors, under no_grad."""
    told = made(module("return x.softmax(-1) @ x.mT")).ask("attention_internals", inputs=[("x", Q)])
    assert told["scores"]["0"].shape == Q.shape
    assert not told["sums"]["0"].requires_grad


def test_negative_weights_are_told():
    """The lowest of all weights, where it is below zero."""
    assert seen(lambda: (SCORES.softmax(-1) - 0.5) @ V)[2] < 0


def test_a_fused_kernel_shows_its_scores():
    """With its own scale, and with one that it is given; weights it shows none."""
    for scale, factor in ((None, 1.0), (1.0, 2.0)):
        scores, sums, _ = seen(lambda s=scale: F.scaled_dot_product_attention(Q, K, V, scale=s))
        assert torch.allclose(scores[0], SCORES * factor, atol=1e-6)
        assert not sums


def test_what_is_normalised_later_is_left_alone():
    """Where the sum of the weights is taken, somebody divides by it."""

    def call():
        weights = SCORES.softmax(-1) * 3
        return weights @ V / weights.sum(-1, keepdim=True)

    assert seen(call)[1] == []


def test_products_of_other_things_are_none():
    """A matrix that comes from no softmax mixes nothing that is looked at."""
    assert seen(lambda: SCORES.relu() @ V) == ([], [], 0.0)


def test_tensors_of_a_transform_that_has_ended_are_left_out():
    """What torch.func maps over a batch can be looked at from inside alone."""

    def attend(scores, v):
        return scores.softmax(-1) @ v

    scores, sums, _ = seen(lambda: torch.func.vmap(attend)(SCORES, V))
    assert scores == sums == []
    assert len(seen(lambda: attend(SCORES, V))[1]) == 1
