"""Ways to split a fused projection: all the same, and the tempting wrong one is not (A3)."""

import pytest
import torch
from attention_scenes import few, normal, sizes
from hypothesis import given
from torch import Tensor

from attnlab.references import heads

WAYS = [
    heads.qkv_by_chunk,
    heads.qkv_by_unbind,
    heads.qkv_by_heads,
    heads.qkv_by_einsum,
    heads.qkv_by_select,
]


def by_hand(qkv: Tensor, H: int, hd: int, part: int, h: int) -> Tensor:
    """The features of one head: (B, S, hd), cut out of the layout (3, H, hd) by counting."""
    start = (part * H + h) * hd
    return qkv[..., start : start + hd]


@pytest.mark.parametrize("split", WAYS)
@given(n=sizes(4))
@few
def test_each_way_gives_the_layouts_own_features(split, n: list[int]) -> None:
    """A3: bit-equal, head by head, to features counted out by hand."""
    B, S, H, hd = n
    qkv = normal(B, S, 3 * H * hd)
    for part, t in enumerate(split(qkv, H)):
        assert t.shape == (B, H, S, hd)
        for h in range(H):
            assert torch.equal(t[:, h], by_hand(qkv, H, hd, part, h))


@pytest.mark.parametrize("split", WAYS)
def test_each_way_passes_gradients(split) -> None:
    """A3: every feature goes to one place of q, k and v, so each gradient is 1."""
    qkv = normal(2, 3, 24).requires_grad_()
    sum(t.sum() for t in split(qkv, 4)).backward()
    assert torch.equal(qkv.grad, torch.ones_like(qkv))


@given(sizes(4))
@few
def test_merging_undoes_splitting(n: list[int]) -> None:
    """A3: and neither is a bare reshape, which mixes positions with heads."""
    B, S, H, hd = n
    x = normal(B, S, H * hd)
    split = heads.split_heads(x, H)
    assert torch.equal(heads.merge_heads(split), x)
    assert not torch.equal(split, x.reshape(B, H, S, hd))


@given(sizes(4))
@few
def test_query_head_h_finds_key_head_h_over_the_group_size(n: list[int]) -> None:
    """A5: each shared head is repeated in place, not the row of them."""
    B, S, Hkv, group = n
    t = normal(B, Hkv, S, 3)
    wide = heads.expand_groups(t, Hkv * group)
    assert all(torch.equal(wide[:, h], t[:, h // group]) for h in range(Hkv * group))


@given(sizes(4))
@few
def test_the_per_head_layout_is_converted(n: list[int]) -> None:
    """A3: weights whose rows are ordered (H, 3, hd) give, converted, the same q, k and v."""
    B, S, H, hd = n
    x, weight, bias = normal(B, S, 5), normal(3 * H * hd, 5), normal(3 * H * hd)
    fused = torch.nn.functional.linear(x, weight, bias).reshape(B, S, H, 3, hd)
    converted = [heads.to_stacked_layout(w, H) for w in (weight, bias)]
    found = heads.qkv_by_chunk(torch.nn.functional.linear(x, *converted), H)
    for part, t in enumerate(found):
        torch.testing.assert_close(t, fused[:, :, :, part].transpose(1, 2))


@pytest.mark.parametrize("split", WAYS)
@pytest.mark.parametrize("shape", [(2, 24), (2, 3, 23), (2, 3, 9), (1, 2, 3, 24)])
def test_a_projection_of_another_width_is_refused(split, shape: tuple[int, ...]) -> None:
    """A3: naming the shape and the number of heads."""
    with pytest.raises(ValueError, match=r"qkv has shape \(.*expected \(B, S, 3\*D\).*num_heads=4"):
        split(torch.zeros(shape), 4)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: heads.split_heads(torch.zeros(2, 8), 2), r"t has shape \(2, 8\): expected \(B, S"),
        (lambda: heads.split_heads(torch.zeros(2, 3, 8), 3), "embed_dim=8, num_heads=3: expected"),
        (lambda: heads.merge_heads(torch.zeros(2, 3, 8)), r"t has shape \(2, 3, 8\): expected \(B"),
        (
            lambda: heads.expand_groups(torch.zeros(2, 4, 3, 5), 6),
            r"t has shape \(2, 4, 3, 5\): expected .* num_heads=6 a multiple of Hkv",
        ),
        (
            lambda: heads.to_stacked_layout(torch.zeros(10, 4), 2),
            r"weight has 10 rows: expected a multiple of 3 \* num_heads = 6",
        ),
    ],
)
def test_shapes_that_are_no_heads_are_refused(call, said: str) -> None:
    """A3: by every function of the file."""
    with pytest.raises(ValueError, match=said):
        call()
