"""The key-value cache by itself: what it holds, what it refuses (A5)."""

import pytest
import torch
from attention_scenes import build, few, normal
from hypothesis import given
from hypothesis import strategies as st

from attnlab.references import masks
from attnlab.references.cache import KVCache

B, HKV, MAX, HD = 3, 2, 8, 5


def new() -> KVCache:
    return KVCache(B, HKV, MAX, HD, like=torch.zeros((), dtype=torch.float64))


@given(st.lists(st.integers(0, 4), max_size=4).filter(lambda parts: sum(parts) <= MAX))
@few
def test_it_holds_what_was_appended_in_order(parts: list[int]) -> None:
    """A5: after each step all keys and values so far come back, bit for bit."""
    cache, keys, values = new(), [normal(B, HKV, 0, HD)], [normal(B, HKV, 0, HD)]
    for S in parts:
        keys.append(normal(B, HKV, S, HD))
        values.append(normal(B, HKV, S, HD))
        k, v = cache.append(keys[-1], values[-1])
        assert torch.equal(k, torch.cat(keys, dim=2))
        assert torch.equal(v, torch.cat(values, dim=2))
    assert cache.length == sum(parts)
    assert cache.max_len == MAX


def test_reordered_rows_are_copies_of_their_parents() -> None:
    """A5: two beams with one parent go on separately; the number of rows may change."""
    cache, k = new(), normal(B, HKV, 3, HD)
    cache.append(k, -k)
    cache.reorder(torch.tensor([2, 2, 0, 1]))
    new_k = normal(4, HKV, 1, HD)
    found, negative = cache.append(new_k, -new_k)
    assert torch.equal(found, torch.cat((k[[2, 2, 0, 1]], new_k), dim=2))
    assert torch.equal(negative, -found)


def test_a_reset_cache_is_as_new() -> None:
    """A5: the next sequence sees nothing of the last; memory is 2 * B * Hkv * max * hd numbers."""
    cache, k = new(), normal(B, HKV, MAX, HD)
    cache.append(k, k)
    cache.reset()
    assert torch.equal(cache.append(k[:, :, :1], k[:, :, :1])[0], k[:, :, :1])
    assert cache.nbytes == 2 * B * HKV * MAX * HD * 8


def test_an_overflow_is_refused_and_nothing_is_written() -> None:
    """A5: with how full the cache is and what was to be added; it can still be filled up."""
    cache, k = new(), normal(B, HKV, 6, HD)
    cache.append(k, k)
    with pytest.raises(ValueError, match="holds 6 of max_len=8 positions: no room for 3 more"):
        cache.append(k[:, :, :3], k[:, :, :3])
    assert cache.length == 6
    assert torch.equal(cache.append(k[:, :, :2], k[:, :, :2])[0][:, :, :6], k)


@pytest.mark.parametrize("wrong", ["mask", "room"])
def test_a_refused_step_leaves_the_cache_as_it_was(wrong: str) -> None:
    """A5: the attention checks its arguments before it appends."""
    module, x = build("grouped"), normal(2, 3, 24)
    cache = module.new_cache(2, 4)
    with torch.no_grad():
        module(x, masks.causal_mask(3), cache=cache)
        mask = masks.causal_mask(2, 2) if wrong == "mask" else masks.causal_mask(2, 5)
        with pytest.raises(ValueError, match=r"= \(2, 6, 2, 5\)" if wrong == "mask" else "no room"):
            module(x[:, :2], mask, cache=cache)
        assert cache.length == 3


@pytest.mark.parametrize(
    ("k", "error", "said"),
    [
        (torch.zeros(3, 2, 5), ValueError, r"k has shape \(3, 2, 5\): expected \(B, Hkv, S, hd\)"),
        (torch.zeros(1, 2, 4, 5), ValueError, r"k has shape .* with B = 3, Hkv = 2, hd = 5"),
        (torch.zeros(3, 6, 4, 5), ValueError, r"k has shape .* with B = 3, Hkv = 2, hd = 5"),
        (torch.zeros(3, 2, 4, 1), ValueError, r"k has shape .* with B = 3, Hkv = 2, hd = 5"),
        (torch.zeros(3, 2, 4, 5), TypeError, "k has dtype torch.float32: expected torch.float64"),
        (torch.zeros(3, 2, 4, 5, device="meta").double(), ValueError, "k is on meta: expected cpu"),
        (normal(3, 2, 4, 5).requires_grad_(), ValueError, "k needs gradients: .*torch.no_grad"),
        (normal(3, 2, 1, 5), ValueError, "k has 1 positions, v 4: expected the same"),
    ],
)
def test_keys_that_do_not_fit_are_refused(k: torch.Tensor, error: type, said: str) -> None:
    """A5: one row or head would be stretched over all by the assignment, silently."""
    cache = new()
    with pytest.raises(error, match=said):
        cache.append(k, normal(3, 2, 4, 5))
    assert cache.length == 0


@pytest.mark.parametrize(
    ("parents", "said"),
    [
        (torch.tensor([0, 3]), r"parents=\[0, 3\]: expected one or more of the rows 0 to 2"),
        (torch.tensor([-1]), r"parents=\[-1\]: expected one or more of the rows 0 to 2"),
        (torch.tensor([], dtype=torch.int64), r"parents=\[\]: expected one or more"),
        (torch.tensor([[0]]), r"parents has shape \(1, 1\)"),
        (torch.tensor([0.0]), "parents has shape .* and dtype torch.float32: expected .* whole"),
        (torch.tensor([True, False, True]), "and dtype torch.bool: expected"),
    ],
)
def test_parents_that_do_not_exist_are_refused(parents: torch.Tensor, said: str) -> None:
    """A5: negative ones would count from the end, flags would select."""
    with pytest.raises(ValueError, match=said):
        new().reorder(parents)


@pytest.mark.parametrize("sizes", [(0, 2, 8, 5), (3, 0, 8, 5), (3, 2, 0, 5), (3, 2, 8, -1)])
def test_a_cache_without_room_is_refused(sizes: tuple[int, int, int, int]) -> None:
    """A5: all four numbers are named."""
    said = "batch={}, num_kv_heads={}, max_len={}, head_dim={}: expected positive".format(*sizes)
    with pytest.raises(ValueError, match=said):
        KVCache(*sizes)
