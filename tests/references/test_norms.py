"""LayerNorm and RMSNorm against PyTorch's (A6)."""

import pytest
import torch
import torch.nn.functional as F
from attention_scenes import exact, few, normal, randomised, sizes
from hypothesis import given

from attnlab.references.norms import LayerNorm, RMSNorm


@given(sizes(3))
@few
def test_layer_norm_is_pytorchs(n: list[int]) -> None:
    """A6: with the same weights, over the last axis alone."""
    module, x = randomised(LayerNorm(n[2], eps=1e-3)), normal(*n)
    expected = F.layer_norm(x, n[2:], module.weight, module.bias, eps=1e-3)
    torch.testing.assert_close(module(x), expected, **exact)


@given(sizes(3))
@few
def test_rms_norm_is_pytorchs(n: list[int]) -> None:
    """A6: with the same weights, over the last axis alone; the mean is not taken away."""
    module, x = randomised(RMSNorm(n[2], eps=1e-3)), 3 + normal(*n)
    expected = F.rms_norm(x, n[2:], module.weight, eps=1e-3)
    torch.testing.assert_close(module(x), expected, **exact)


@pytest.mark.parametrize("norm", [LayerNorm, RMSNorm])
def test_zeros_give_no_nan(norm: type) -> None:
    """A6: eps prevents it, forward and backward; what is left is the shift, if there is one."""
    module, x = randomised(norm(6)), torch.zeros(2, 6, dtype=torch.float64, requires_grad=True)
    out = module(x)
    out.sum().backward()
    expected = module.bias.expand(2, 6) if norm is LayerNorm else torch.zeros(2, 6).double()
    torch.testing.assert_close(out, expected)
    assert x.grad.isfinite().all()


@pytest.mark.parametrize("norm", [LayerNorm, RMSNorm])
def test_gradients_agree_with_finite_differences(norm: type) -> None:
    """A6: in float64."""
    module = randomised(norm(6))
    assert torch.autograd.gradcheck(module, normal(2, 6).requires_grad_())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("norm", [LayerNorm, RMSNorm])
def test_halves_do_not_overflow(norm: type, dtype: torch.dtype) -> None:
    """A6: squares of 1000 do not fit in float16, so they are taken in float32."""
    module, x = norm(6).to(dtype), (1000 * normal(3, 6)).to(dtype)
    out = module(x)
    assert out.dtype == dtype
    expected = module.double()(x.double())
    torch.testing.assert_close(out.double(), expected, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("norm", [LayerNorm, RMSNorm])
def test_what_does_not_fit_is_refused(norm: type) -> None:
    """A6: a width of 1 would be broadcast; values are named."""
    with pytest.raises(ValueError, match=r"x has shape \(2, 1\): expected \(..., D\) with D = 6"):
        norm(6)(torch.zeros(2, 1))
    with pytest.raises(ValueError, match=r"x has shape \(\): expected"):
        norm(6)(torch.tensor(1.0))
    with pytest.raises(ValueError, match="dim=0: expected a positive number"):
        norm(0)
    with pytest.raises(ValueError, match=r"eps=0.0: expected a small positive number"):
        norm(6, eps=0.0)
