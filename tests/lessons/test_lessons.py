"""The worked examples, against implementations that nobody here wrote by hand."""

import math

import pytest
import torch
from torch.nn import functional as F

from attnlab.lessons import attention, find_lesson, kv_cache, lesson_titles, online_softmax, rotary
from attnlab.lessons.t5_buckets import bucket, bucket_of_both
from attnlab.references.rotary import RotaryEmbedding


@pytest.mark.parametrize("name", lesson_titles())
def test_a_lesson_has_steps_questions_and_a_way_on(name):
    """Its id is what is typed, and it ends with what people ask."""
    lesson = find_lesson(name)
    assert (lesson.id, lesson.title) == (name, lesson_titles()[name])
    assert len(lesson.steps) > 4
    assert lesson.steps[-1].questions
    assert lesson.next.startswith("attnlab ")


def test_attention_is_pytorchs():
    """Every row of the output, by the fused kernel."""
    q, k, v = (
        torch.tensor(t, dtype=torch.float64) for t in (attention.Q, attention.K, attention.V)
    )
    right = F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]
    mine = [attention.mix(row) for row in attention.weights()]
    assert torch.allclose(torch.tensor(mine, dtype=torch.float64), right)


def test_the_cost_of_a_cache_is_what_a_loop_counts():
    """Products with and without it, and the bytes of its tensors."""
    without = sum(kv_cache.HD for n in range(1, 11) for _ in range(n) for _ in range(n))
    assert kv_cache.products(10, cached=False) == without
    assert kv_cache.products(10, cached=True) == sum(kv_cache.HD * n for n in range(1, 11))
    kept = [torch.zeros(3, 5, 7, dtype=torch.float16) for _ in range(2 * 4)]
    bytes_of_all = sum(t.numel() * t.element_size() for t in kept)
    assert kv_cache.cache_bytes(layers=4, heads=3, width=7, tokens=5) == bytes_of_all


def test_rotary_vectors_are_the_references_and_know_only_distances():
    """In both pairings; with one of each, distances no longer tell."""
    x = torch.tensor(rotary.QUERY, dtype=torch.float64).expand(1, 1, 6, 4)
    for layout in ("half", "interleaved"):
        right = RotaryEmbedding(4, base=rotary.BASE, layout=layout)(x, x)[0][0, 0]
        mine = [rotary.turn(rotary.QUERY, p, layout == "half") for p in range(6)]
        assert torch.allclose(torch.tensor(mine, dtype=torch.float64), right.double(), atol=1e-6)
    assert rotary.score(5, 3) == pytest.approx(rotary.score(2, 0))
    assert rotary.score(5, 3, mixed=True) != pytest.approx(rotary.score(2, 0, mixed=True))


def test_buckets_are_those_of_the_published_formula():
    """As the paper's code computes them, in both directions."""
    for n in range(40):
        far = 4 + int(math.log(max(n, 1) / 4) / math.log(4) * 4) if n >= 4 else n
        assert bucket(n) == min(far, 7)
        for offset in (n, -n):
            side = 4 if offset > 0 else 0
            far = 2 + int(math.log(max(n, 1) / 2) / math.log(8) * 2) if n >= 2 else n
            assert bucket_of_both(offset) == side + min(far, 3)


def test_blocks_give_the_softmax_of_the_whole_only_where_they_are_corrected():
    """The mean of the values, by PyTorch's softmax."""
    scores, values = map(torch.tensor, (online_softmax.SCORES, online_softmax.VALUES))
    right = (scores.double().softmax(0) @ values.double()).item()
    _, total, mixed = online_softmax.states()[-1]
    assert mixed / total == pytest.approx(right) == pytest.approx(online_softmax.whole())
    _, total, mixed = online_softmax.states(corrected=False)[-1]
    assert mixed / total != pytest.approx(right, rel=0.1)
