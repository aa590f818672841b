"""Laws that hold for every attention with a cache: shared heads, norms, caps, sinks, all joined."""

import math
from itertools import accumulate

import pytest
import torch
from attention_scenes import CACHED, D, H, build, cached, exact, few, normal, random_mask
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from attnlab.references import masks
from attnlab.references.grouped import GroupedQueryAttention

every = pytest.mark.parametrize("name", sorted(CACHED))
chunks = st.lists(st.integers(1, 5), min_size=1, max_size=5)


def decode(module: GroupedQueryAttention, x: Tensor, mask: Tensor, parts: list[int]) -> Tensor:
    """The sequence in parts through a cache; `mask` is the one of the whole sequence."""
    cache = module.new_cache(x.shape[0], x.shape[1])
    outs = []
    with torch.no_grad():
        for start, end in zip([0, *accumulate(parts)], accumulate(parts), strict=False):
            outs.append(module(x[:, start:end], mask[:, :, start:end, :end], cache=cache))
    return torch.cat(outs, dim=1)


@given(cached, chunks, st.integers(1, 4))
@few
def test_decoding_in_any_parts_is_one_pass(name: str, parts: list[int], B: int) -> None:
    """A5: prefill and steps of one or several give what the whole sequence gives at once."""
    module, x = build(name), normal(B, sum(parts), D)
    S = sum(parts)
    mask = masks.causal_mask(S) | (torch.rand(B, H, S, S) < 0.2)
    torch.testing.assert_close(decode(module, x, mask, parts), module(x, mask), **exact)


@every
def test_a_window_decodes_as_it_prefills(name: str) -> None:
    """A5: sliding-window and causal masks of one step are the last rows of the whole mask."""
    module, x, window = build(name), normal(2, 7, D), masks.sliding_window_mask(7, window=3)
    cache = module.new_cache(2, 7)
    with torch.no_grad():
        module(x[:, :4], masks.sliding_window_mask(4, window=3), cache=cache)
        last = module(x[:, 4:], masks.sliding_window_mask(3, 7, window=3), cache=cache)
    torch.testing.assert_close(last, module(x, window)[:, 4:], **exact)


@given(cached, st.lists(st.integers(0, 2), min_size=1, max_size=5))
@few
def test_beams_go_on_from_their_parents(name: str, parents: list[int]) -> None:
    """A5: after `reorder` each beam decodes as if its parent's history had been its own."""
    module, history = build(name), normal(3, 4, D)
    cache = module.new_cache(3, 6)
    new = normal(len(parents), 2, D)
    with torch.no_grad():
        module(history, masks.causal_mask(4), cache=cache)
        cache.reorder(torch.tensor(parents))
        found = module(new, masks.causal_mask(2, 6), cache=cache)
    whole = torch.cat((history[parents], new), dim=1)
    torch.testing.assert_close(found, module(whole, masks.causal_mask(6))[:, 4:], **exact)


@given(cached, st.lists(st.integers(1, 5), min_size=1, max_size=4))
@few
def test_packed_sequences_are_as_if_alone(name: str, parts: list[int]) -> None:
    """A4: one row with a block-diagonal causal mask and positions that begin anew."""
    module, x = build(name), normal(1, sum(parts), D)
    segments = masks.segment_ids(parts)
    mask = masks.combine(masks.packed_mask(segments), masks.causal_mask(sum(parts)))
    packed = module(x, mask, positions=masks.segment_positions(segments))
    alone = [module(part, masks.causal_mask(part.shape[1])) for part in x.split(parts, dim=1)]
    torch.testing.assert_close(packed, torch.cat(alone, dim=1), **exact)


@given(
    cached, st.lists(st.integers(1, 5), min_size=2, max_size=4), st.sampled_from(["left", "right"])
)
@few
def test_padding_changes_nothing(name: str, real: list[int], side: str) -> None:
    """A4: each sequence of a padded batch gives what it gives alone, whatever fills the rest."""
    module, S = build(name), 6
    x, lengths = 10 * normal(len(real), S, D), torch.tensor(real)
    mask = masks.combine(masks.padding_mask(lengths, S, side=side), masks.causal_mask(S))
    start = S - lengths if side == "left" else torch.zeros_like(lengths)
    positions = (torch.arange(S) - start[:, None]).clamp(min=0)
    out = module(x, mask, positions=positions)
    for b, n in enumerate(real):
        own = slice(S - n, S) if side == "left" else slice(0, n)
        alone = module(x[b : b + 1, own], masks.causal_mask(n))
        torch.testing.assert_close(out[b : b + 1, own], alone, **exact)


@given(cached, st.integers(2, 4), st.integers(2, 6))
@few
def test_sequences_of_a_batch_do_not_meet(name: str, B: int, S: int) -> None:
    """A5, C6: each alone gives what it gives in the batch."""
    module, x, mask = build(name), normal(B, S, D), random_mask(B, 1, S, S)
    alone = torch.cat([module(x[b : b + 1], mask[b : b + 1]) for b in range(B)])
    torch.testing.assert_close(module(x, mask), alone, **exact)


@given(cached, st.integers(2, 6))
@few
def test_boolean_and_additive_masks_agree(name: str, S: int) -> None:
    """A4: the mask as numbers in `bias` gives the same; a soft-cap does not soften it."""
    module, x, mask = build(name), normal(3, S, D), random_mask(3, H, S, S)
    additive = masks.to_additive(mask, torch.float64)
    torch.testing.assert_close(module(x, bias=additive), module(x, mask), **exact)


@every
def test_a_masked_key_changes_nothing(name: str) -> None:
    """A4, C6: to the last bit, for every other query."""
    module, x, mask = build(name), normal(3, 5, D), random_mask(3, 1, 5, 5)
    mask[..., 2] = True
    other = x.clone()
    other[:, 2] = 100 * normal(3, D)
    kept = [0, 1, 3, 4]
    assert torch.equal(module(other, mask)[:, kept], module(x, mask)[:, kept])


@every
def test_an_empty_row_leaves_zeros_and_finite_gradients(name: str) -> None:
    """A4: its context is zeros, so the output is the bias of `out_proj`; no step makes a NaN."""
    module, x, mask = build(name), normal(2, 4, D).requires_grad_(), random_mask(2, 1, 4, 4)
    mask[1, 0, 2] = True
    mask[0] = True
    with torch.autograd.set_detect_anomaly(True):
        out = module(x, mask)
        out.square().sum().backward()
    bias = module.out_proj.bias
    expected = torch.zeros(D).double() if bias is None else bias
    torch.testing.assert_close(out[1, 2], expected)
    torch.testing.assert_close(out[0], expected.expand(4, D))
    assert all(t.grad.isfinite().all() for t in (x, *module.parameters()))


@every
def test_gradients_agree_with_finite_differences(name: str) -> None:
    """A5: through masks with an empty row, in float64."""
    module, x, mask = build(name), 0.3 * normal(1, 3, D), random_mask(1, 1, 3, 3)
    mask[0, 0, 1] = True
    scan = normal(D, 3)  # fewer inputs than D, for time
    small = normal(1, 3, 3).requires_grad_()
    assert torch.autograd.gradcheck(lambda t: module(x + t @ scan.T, mask), small, fast_mode=True)


@every
@pytest.mark.parametrize(
    ("dtype", "close"), [(torch.float32, 1e-5), (torch.float16, 1e-2), (torch.bfloat16, 6e-2)]
)
def test_narrower_types_stay_close(name: str, dtype: torch.dtype, close: float) -> None:
    """A5: with the same rounded weights and inputs, near float64; answered in its own type."""
    module, x, mask = build(name), normal(2, 5, D).to(dtype), random_mask(2, 1, 5, 5)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(0.4)  # the scale of trained weights: outputs of about 1
        found = module.to(dtype)(x, mask)
        expected = module.double()(x.double(), mask)
    assert found.dtype == dtype
    torch.testing.assert_close(found.double(), expected, rtol=close, atol=close)


@every
def test_large_scores_fit_into_halves(name: str) -> None:
    """A5: scores are scaled before they are summed up, so q k^T beyond 65504 is no infinity."""
    module = build(name).half()
    x = torch.full((1, 2, D), 30.0, dtype=torch.float16)
    with torch.no_grad():
        for layer in (module.q_proj, module.k_proj):
            layer.weight.fill_(0.2)
        assert module(x).isfinite().all()
    assert math.prod([4, 30 * 0.2 * D, 30 * 0.2 * D]) > 65504


@every
def test_it_leaves_its_arguments_alone(name: str) -> None:
    """A5: input and mask are as before; the answer repeats; no_grad gives no graph."""
    module, x, mask = build(name), normal(2, 5, D), random_mask(2, 1, 5, 5)
    before = x.clone(), mask.clone()
    with torch.no_grad():
        out = module(x, mask)
    assert torch.equal(out, module(x, mask))
    assert not out.requires_grad
    assert torch.equal(x, before[0])
    assert torch.equal(mask, before[1])


@every
def test_fresh_weights_are_all_used(name: str) -> None:
    """A5: every parameter gets a gradient that is not zero, but for the key's bias.

    Softmax does not see what all keys share, so the gradient of `k_proj.bias` vanishes where
    neither rotation nor norm nor cap nor sink makes it matter."""
    module, x = CACHED[name]().double(), normal(2, 5, D)
    module(x, masks.causal_mask(5)).square().sum().backward()
    for parameter, weight in module.named_parameters():
        if parameter != "k_proj.bias":
            assert weight.grad.abs().max() > 1e-12, parameter
