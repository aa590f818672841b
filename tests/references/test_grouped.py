"""Shared key and value heads against PyTorch's attention with the same weights (A5)."""

import math

import pytest
import torch
import torch.nn.functional as F
from attention_scenes import build, exact, few, normal, random_mask, randomised, sizes, spin
from hypothesis import given
from torch import Tensor, nn

from attnlab.references.grouped import GroupedQueryAttention, MultiQueryAttention


def heads(t: Tensor, count: int) -> Tensor:
    return torch.stack(t.chunk(count, dim=-1), dim=1)


def by_kernel(module: GroupedQueryAttention, x: Tensor, mask: Tensor | None) -> Tensor:
    """The same by `F.scaled_dot_product_attention`, which groups heads itself."""
    H, Hkv = module.num_heads, module.num_kv_heads
    q, k, v = heads(module.q_proj(x), H), heads(module.k_proj(x), Hkv), heads(module.v_proj(x), Hkv)
    allowed = None if mask is None else ~mask
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed, enable_gqa=True)
    return module.out_proj(torch.cat(out.unbind(1), dim=-1))


@given(sizes(5, 6))
@few
def test_equals_fused_grouped_attention(n: list[int]) -> None:
    """A5: any number of groups and of heads in a group."""
    B, S, Hkv, group, hd = n
    H = Hkv * group
    module = randomised(GroupedQueryAttention(H * hd, H, Hkv))
    x, mask = normal(B, S, H * hd), random_mask(B, H, S, S)
    torch.testing.assert_close(module(x, mask), by_kernel(module, x, mask), **exact)
    torch.testing.assert_close(module(x), by_kernel(module, x, None), **exact)


@given(sizes(4))
@few
def test_with_a_key_head_for_each_it_is_multi_head_attention(n: list[int]) -> None:
    """A5: `num_kv_heads` None is `nn.MultiheadAttention` with the same weights."""
    B, S, H, hd = n
    module, twin = randomised(GroupedQueryAttention(H * hd, H)), nn.MultiheadAttention(H * hd, H)
    parts = (module.q_proj, module.k_proj, module.v_proj)
    twin.in_proj_weight = nn.Parameter(torch.cat([part.weight for part in parts]))
    twin.in_proj_bias = nn.Parameter(torch.cat([part.bias for part in parts]))
    twin.out_proj.weight, twin.out_proj.bias = module.out_proj.weight, module.out_proj.bias
    x, mask = normal(B, S, H * hd), random_mask(B, 1, S, S)
    along = x.transpose(0, 1)
    per_head = mask.expand(B, H, S, S).flatten(0, 1)
    expected = twin(along, along, along, attn_mask=per_head, need_weights=False)[0].transpose(0, 1)
    torch.testing.assert_close(module(x, mask), expected, **exact)


@given(sizes(5, 6))
@few
def test_equals_multi_head_attention_with_repeated_weights(n: list[int]) -> None:
    """A5: the projections of a shared head repeated for each of its queries; cached or not."""
    B, S, Hkv, group, hd = n
    H, D = Hkv * group, Hkv * group * hd
    module = randomised(GroupedQueryAttention(D, H, Hkv))
    wide = GroupedQueryAttention(D, H).double().eval()
    weights = module.state_dict()
    for name in ("k_proj.weight", "k_proj.bias", "v_proj.weight", "v_proj.bias"):
        rows = weights[name].unflatten(0, (Hkv, hd)).repeat_interleave(group, dim=0)
        weights[name] = rows.flatten(0, 1)
    wide.load_state_dict(weights)
    x, mask = normal(B, S, D), random_mask(B, H, S, S)
    torch.testing.assert_close(module(x, mask), wide(x, mask), **exact)


def test_one_shared_head_is_multi_query_attention() -> None:
    """A5: the same weights, one key head, and a cache that is smaller by the number of heads."""
    module, twin = build("one-head"), GroupedQueryAttention(24, 6, 1, bias=False, rotate=spin)
    twin.double().load_state_dict(module.state_dict())
    x, mask = normal(2, 5, 24), random_mask(2, 1, 5, 5)
    assert torch.equal(module(x, mask), twin(x, mask))
    whole = GroupedQueryAttention(24, 6).double().new_cache(2, 10)
    assert whole.nbytes == 6 * module.new_cache(2, 10).nbytes == 2 * 2 * 6 * 10 * 4 * 8


def test_positions_reach_the_rotation_of_queries_and_keys() -> None:
    """A5: only distances matter to a rotation; given positions replace the counted ones."""
    module, x = build("grouped"), normal(2, 5, 24)
    assert not torch.allclose(module(x), by_kernel(module, x, None))
    torch.testing.assert_close(module(x, positions=torch.arange(7, 12)), module(x), **exact)
    spread = torch.stack((torch.arange(5), 2 * torch.arange(5)))
    out = module(x, positions=spread)
    torch.testing.assert_close(out[0], module(x)[0], **exact)
    assert not torch.allclose(out[1], module(x)[1])


def test_a_bias_is_added_to_the_scores() -> None:
    """A5: as the floating-point mask of `F.scaled_dot_product_attention`; shared or per head."""
    module, x, bias = build("heads"), normal(2, 5, 24), normal(1, 6, 5, 5)
    q, k, v = (heads(p(x), 6) for p in (module.q_proj, module.k_proj, module.v_proj))
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=bias.expand(2, 6, 5, 5))
    expected = module.out_proj(torch.cat(out.unbind(1), dim=-1))
    torch.testing.assert_close(module(x, bias=bias), expected, **exact)


def test_dropout_takes_whole_keys_in_training_only() -> None:
    """A5: on the weights after softmax, scaled by 1 / (1 - p); evaluation has none."""
    module, x = randomised(GroupedQueryAttention(24, 6, 2, dropout=0.4)), normal(3, 5, 24)
    assert torch.equal(module(x), module(x))
    module.train()
    q, k, v = heads(module.q_proj(x), 6), heads(module.k_proj(x), 2), heads(module.v_proj(x), 2)
    k, v = (t.repeat_interleave(3, dim=1) for t in (k, v))
    torch.manual_seed(5)
    kept = F.dropout(torch.ones(3, 6, 5, 5).double(), 0.4)
    weights = torch.softmax(torch.einsum("bhid,bhjd->bhij", q, k) / 2, dim=-1) * kept
    expected = module.out_proj(torch.einsum("bhij,bhjd->bihd", weights, v).flatten(2))
    torch.manual_seed(5)
    torch.testing.assert_close(module(x), expected, **exact)
    everything = randomised(GroupedQueryAttention(24, 6, dropout=1.0)).train()
    torch.testing.assert_close(everything(x), everything.out_proj.bias.expand(3, 5, 24))


def test_dropout_is_right_on_average() -> None:
    """A5: the mean of many training passes is the evaluation's answer."""
    module, x = randomised(GroupedQueryAttention(8, 2, dropout=0.3)), normal(1, 4, 8)
    many = module.train()(x.expand(20000, 4, 8)).mean(dim=0)
    torch.testing.assert_close(many, module.eval()(x)[0], rtol=0, atol=0.15)


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda: GroupedQueryAttention(7, 2), "embed_dim=7, num_heads=2: expected .* multiple"),
        (lambda: GroupedQueryAttention(8, 0), "embed_dim=8, num_heads=0: expected positive"),
        (lambda: GroupedQueryAttention(0, 1), "embed_dim=0, num_heads=1: expected positive"),
        (lambda: GroupedQueryAttention(12, 6, 4), "num_heads=6, num_kv_heads=4: expected .* mult"),
        (lambda: GroupedQueryAttention(12, 6, 0), "num_heads=6, num_kv_heads=0: expected positive"),
        (lambda: GroupedQueryAttention(12, 6, 12), "num_heads=6, num_kv_heads=12: expected"),
        (lambda: GroupedQueryAttention(12, 6, dropout=1.5), "dropout=1.5: expected a probability"),
        (lambda: GroupedQueryAttention(12, 6, dropout=math.nan), "dropout=nan: expected a prob"),
        (lambda: MultiQueryAttention(7, 2), "embed_dim=7, num_heads=2: expected .* multiple"),
    ],
)
def test_sizes_that_do_not_divide_are_refused(build, said: str) -> None:
    """A5: naming both numbers and what is expected."""
    with pytest.raises(ValueError, match=said):
        build()


@pytest.mark.parametrize("shape", [(5, 24), (3, 5, 23), (3, 2, 5, 24), (24,)])
def test_an_x_of_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    """A5: rank and width are checked before anything is computed."""
    with pytest.raises(ValueError, match=r"x has shape \(.*expected \(B, S, D\) with D = 24"):
        GroupedQueryAttention(24, 6, 2)(torch.zeros(shape))


def test_an_x_of_another_type_or_device_is_refused() -> None:
    """A5: naming both types, both devices; under autocast types may differ."""
    module = GroupedQueryAttention(24, 6, 2)
    with pytest.raises(TypeError, match=r"x has dtype torch.float64: expected torch.float32"):
        module(normal(3, 5, 24))
    with pytest.raises(TypeError, match=r"x has dtype torch.int64: expected torch.float32"):
        module(torch.zeros(3, 5, 24, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"x is on meta: expected cpu, as the weights"):
        module(torch.zeros(3, 5, 24, device="meta"))
    with torch.autocast("cpu", torch.bfloat16):
        assert module(torch.zeros(3, 5, 24, dtype=torch.bfloat16)).dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("shape", "hint"),
    [
        ((5, 5), r"\(Sq, Sk\) becomes so by `NAME\[None, None\]`"),
        ((3, 5), r"\(B, Sk\) by `NAME\[:, None, None\]`"),
        ((3, 5, 5), r"\(B, Sq, Sk\) becomes so by `NAME\[:, None\]`"),
        ((2, 1, 5, 5), ""),
        ((3, 2, 5, 5), ""),
        ((3, 6, 4, 5), ""),
        ((3, 6, 5, 4), ""),
        ((1, 1, 5, 1), ""),
        ((1, 1, 1, 5, 5), ""),
    ],
)
def test_what_would_only_broadcast_is_refused(shape: tuple[int, ...], hint: str) -> None:
    """A5: masks and biases have four axes; the message says how they get them."""
    module, x = GroupedQueryAttention(24, 6, 2), torch.zeros(3, 5, 24)
    said = r" has shape \(.*: expected \(B, H, Sq, Sk\) = \(3, 6, 5, 5\), with 1 for.*"
    with pytest.raises(ValueError, match="mask" + said + hint.replace("NAME", "mask")):
        module(x, torch.zeros(shape, dtype=torch.bool))
    with pytest.raises(ValueError, match="bias" + said + hint.replace("NAME", "bias")):
        module(x, bias=torch.zeros(shape))


def test_masks_and_biases_of_other_types_and_devices_are_refused() -> None:
    """A5: a float mask is not taken for a boolean one, nor the reverse."""
    module, x = GroupedQueryAttention(24, 6, 2), torch.zeros(3, 5, 24)
    flags = torch.zeros(1, 1, 5, 5, dtype=torch.bool)
    with pytest.raises(TypeError, match=r"mask has dtype torch.float32: .*torch.bool.*to_boolean"):
        module(x, flags.float())
    with pytest.raises(TypeError, match=r"bias has dtype torch.bool: expected floating-point"):
        module(x, bias=flags)
    with pytest.raises(ValueError, match=r"mask is on meta: expected cpu, as the input"):
        module(x, flags.to("meta"))


def test_positions_of_another_shape_are_refused() -> None:
    """A5: one row for all or one for each; a (1, S) row would only broadcast."""
    module, x = GroupedQueryAttention(24, 6, 2, rotate=spin), torch.zeros(3, 5, 24)
    for shape in [(4,), (1, 5), (5, 3), ()]:
        with pytest.raises(
            ValueError, match=r"positions has shape .*: expected \(5,\) or \(3, 5\)"
        ):
            module(x, positions=torch.zeros(shape, dtype=torch.int64))
    with pytest.raises(TypeError, match=r"positions has dtype torch.float32: expected whole"):
        module(x, positions=torch.zeros(5))
