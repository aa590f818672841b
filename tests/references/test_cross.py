"""Cross attention against `nn.MultiheadAttention`, whose keys may have another width too (A5)."""

import pytest
import torch
from attention_scenes import exact, few, normal, random_mask, randomised, sizes
from hypothesis import given
from torch import nn

from attnlab.references import masks
from attnlab.references.cross import CrossAttention


def pytorch_twin(module: CrossAttention) -> nn.MultiheadAttention:
    """The same weights in PyTorch's class; with a context of width D it fuses them."""
    D, Dc = module.embed_dim, module.context_dim
    twin = nn.MultiheadAttention(D, module.num_heads, kdim=Dc, vdim=Dc, batch_first=True).double()
    parts = (module.q_proj, module.k_proj, module.v_proj)
    if Dc == D:
        twin.in_proj_weight = nn.Parameter(torch.cat([part.weight for part in parts]))
    else:
        twin.q_proj_weight, twin.k_proj_weight, twin.v_proj_weight = (p.weight for p in parts)
    twin.in_proj_bias = nn.Parameter(torch.cat([part.bias for part in parts]))
    twin.out_proj.weight, twin.out_proj.bias = module.out_proj.weight, module.out_proj.bias
    return twin


@given(sizes(6, 9))
@few
def test_equals_pytorch_multihead_attention(n: list[int]) -> None:
    """A5: contexts of another length and width, with padding and with any mask."""
    B, Sq, Sk, Dc, H, hd = n
    module = randomised(CrossAttention(H * hd, H, Dc))
    x, context, mask = normal(B, Sq, H * hd), normal(B, Sk, Dc), random_mask(B, H, Sq, Sk)
    twin = pytorch_twin(module)
    expected = twin(x, context, context, attn_mask=mask.flatten(0, 1), need_weights=False)[0]
    torch.testing.assert_close(module(x, context, mask), expected, **exact)
    padding = random_mask(B, 1, 1, Sk)
    flags = padding[:, 0, 0]
    expected = twin(x, context, context, key_padding_mask=flags, need_weights=False)[0]
    torch.testing.assert_close(module(x, context, padding), expected, **exact)


def test_a_context_of_the_same_width_is_the_default() -> None:
    """A5: over x itself it is self-attention."""
    module, x = randomised(CrossAttention(12, 3)), normal(2, 5, 12)
    expected = pytorch_twin(module)(x, x, x, need_weights=False)[0]
    torch.testing.assert_close(module(x, x), expected, **exact)


@given(sizes(3, 6))
@few
def test_a_remembered_context_answers_every_step(n: list[int]) -> None:
    """A5: positions asked one by one get what all get at once; queries do not meet."""
    B, Sq, Sk = n
    module, x, context = randomised(CrossAttention(12, 3, 7)), normal(B, Sq, 12), normal(B, Sk, 7)
    mask, memory = random_mask(B, 1, Sq, Sk), module.remember(context)
    steps = [module.attend(x[:, [i]], memory, mask[:, :, [i]]) for i in range(Sq)]
    torch.testing.assert_close(torch.cat(steps, dim=1), module(x, context, mask), **exact)


def test_padding_of_the_context_changes_nothing() -> None:
    """A4: each context of a padded batch gives what it gives alone."""
    module, x, context = randomised(CrossAttention(12, 3, 7)), normal(3, 4, 12), normal(3, 6, 7)
    real = torch.tensor([6, 2, 5])
    out = module(x, context, masks.padding_mask(real, 6))
    for b, n in enumerate(real.tolist()):
        alone = module(x[b : b + 1], context[b : b + 1, :n])
        torch.testing.assert_close(out[b : b + 1], alone, **exact)


def test_an_empty_context_leaves_zeros_and_finite_gradients() -> None:
    """A4: a query whose whole context is padding gets the bias of `out_proj`."""
    module, x, context = randomised(CrossAttention(12, 3, 7)), normal(2, 4, 12), normal(2, 6, 7)
    x.requires_grad_()
    with torch.autograd.set_detect_anomaly(True):
        out = module(x, context, masks.padding_mask(torch.tensor([0, 4]), 6))
        out.square().sum().backward()
    torch.testing.assert_close(out[0], module.out_proj.bias.expand(4, 12))
    assert all(t.grad.isfinite().all() for t in (x, *module.parameters()))


def test_dropout_is_for_training() -> None:
    """A5: with all weights dropped only the bias is left; evaluation has none."""
    module, x, context = (
        randomised(CrossAttention(12, 3, 7, dropout=1.0)),
        normal(2, 4, 12),
        normal(2, 6, 7),
    )
    assert torch.equal(module(x, context), module(x, context))
    torch.testing.assert_close(module.train()(x, context), module.out_proj.bias.expand(2, 4, 12))


@pytest.mark.parametrize(("dtype", "close"), [(torch.float16, 1e-2), (torch.bfloat16, 5e-2)])
def test_narrower_types_stay_close(dtype: torch.dtype, close: float) -> None:
    """A5: with the same rounded weights and inputs, near float64."""
    module = CrossAttention(12, 3, 7).to(dtype)
    x, context, mask = normal(2, 4, 12).to(dtype), normal(2, 6, 7).to(dtype), None
    with torch.no_grad():
        found = module(x, context, mask)
        expected = module.double()(x.double(), context.double(), mask)
    torch.testing.assert_close(found.double(), expected, rtol=close, atol=close)


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda m, x, c: CrossAttention(7, 2), ValueError, "embed_dim=7, num_heads=2: expected"),
        (lambda m, x, c: CrossAttention(8, 2, 0), ValueError, "context_dim=0: expected a positive"),
        (
            lambda m, x, c: CrossAttention(8, 2, dropout=-1),
            ValueError,
            "dropout=-1: expected a pro",
        ),
        (lambda m, x, c: m(c, c), ValueError, r"x has shape \(3, 6, 7\): .* with D = 12"),
        (lambda m, x, c: m(x, x), ValueError, r"context has shape \(3, 4, 12\): .* with D = 7"),
        (lambda m, x, c: m(x, c[0]), ValueError, r"context has shape \(6, 7\): expected"),
        (lambda m, x, c: m(x, c[:1]), ValueError, "x has 3 sequences, the context 1: expected one"),
        (lambda m, x, c: m(x, c.double()), TypeError, "context has dtype torch.float64: expected"),
        (lambda m, x, c: m(x, c.to("meta")), ValueError, "context is on meta: expected cpu"),
        (
            lambda m, x, c: m(x, c, masks.causal_mask(6, 4)),
            ValueError,
            r"mask has shape \(1, 1, 6, 4\): expected .* = \(3, 3, 4, 6\)",
        ),
        (lambda m, x, c: m(x, c, torch.zeros(4, 6)), TypeError, "mask has dtype torch.float32"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(call, error: type, said: str) -> None:
    """A5: naming the argument, its value and what is expected."""
    with pytest.raises(error, match=said):
        call(CrossAttention(12, 3, 7), torch.zeros(3, 4, 12), torch.zeros(3, 6, 7))
