"""Feed-forward layers against their formulas spelt out (A6)."""

import math

import pytest
import torch
from attention_scenes import exact, few, normal, randomised, sizes
from hypothesis import given

from attnlab.references.feed_forward import FeedForward, SwiGLU


def affine(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    out = torch.einsum("bsd,fd->bsf", x, layer.weight)
    return out if layer.bias is None else out + layer.bias


@given(sizes(4))
@few
def test_gelu_is_x_times_the_normal_distribution(n: list[int]) -> None:
    """A6: exactly, by erf; or its approximation by tanh, which is near but not the same."""
    B, S, D, F = n
    module, x = randomised(FeedForward(D, F)), normal(B, S, D)
    up = affine(module.up, x)
    expected = affine(module.down, up * (1 + torch.erf(up / math.sqrt(2))) / 2)
    torch.testing.assert_close(module(x), expected, **exact)
    near = FeedForward(D, F, tanh=True).double()
    near.load_state_dict(module.state_dict())
    inner = math.sqrt(2 / math.pi) * (up + 0.044715 * up**3)
    expected = affine(module.down, up * (1 + torch.tanh(inner)) / 2)
    torch.testing.assert_close(near(x), expected, **exact)
    assert not torch.equal(near(x), module(x))


@given(sizes(4))
@few
def test_swiglu_gates_one_projection_by_another(n: list[int]) -> None:
    """A6: the sigmoid stands on the gate alone; no biases unless asked for."""
    B, S, D, F = n
    module, x = randomised(SwiGLU(D, F, bias=True)), normal(B, S, D)
    gate = affine(module.gate, x)
    expected = affine(module.down, gate / (1 + torch.exp(-gate)) * affine(module.up, x))
    torch.testing.assert_close(module(x), expected, **exact)
    assert sum(p.numel() for p in SwiGLU(D, F).parameters()) == 3 * D * F


def test_two_thirds_of_the_width_cost_the_same() -> None:
    """A6: three matrices of 8/3 * D hold as much as two of 4 * D."""
    gated, plain = SwiGLU(12, 32), FeedForward(12, 48, bias=False)
    assert len({sum(p.numel() for p in m.parameters()) for m in (gated, plain)}) == 1


@pytest.mark.parametrize("layer", [FeedForward, SwiGLU])
def test_dropout_is_for_training(layer: type) -> None:
    """A6: inside, before the last projection; evaluation has none."""
    module, x = randomised(layer(6, 9, bias=True, dropout=1.0)), normal(2, 3, 6)
    assert not torch.equal(module(x), module.down.bias.expand(2, 3, 6))
    torch.testing.assert_close(module.train()(x), module.down.bias.expand(2, 3, 6))


@pytest.mark.parametrize("layer", [FeedForward, SwiGLU])
def test_what_does_not_fit_is_refused(layer: type) -> None:
    """A6: naming the argument, its value and what is expected."""
    for widths, said in [((0, 4), "embed_dim=0"), ((4, -1), "hidden_dim=-1")]:
        with pytest.raises(ValueError, match=f"{said}: expected a positive number"):
            layer(*widths)
    with pytest.raises(ValueError, match="dropout=2: expected a probability"):
        layer(4, 8, dropout=2)
    with pytest.raises(ValueError, match=r"x has shape \(2, 3, 5\): expected .* D = 4"):
        layer(4, 8)(torch.zeros(2, 3, 5))
    with pytest.raises(TypeError, match=r"x has dtype torch.float64: expected torch.float32"):
        layer(4, 8)(torch.zeros(2, 3, 4, dtype=torch.float64))
