"""Two norms in a row, each an autograd function of its own: LayerNorm, then RMSNorm per head."""

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import FunctionCtx, once_differentiable


def wide(t: Tensor) -> Tensor:
    """Sums of half precision are taken in float32."""
    return t.float() if t.dtype in (torch.float16, torch.bfloat16) else t


def over_rows(t: Tensor) -> Tensor:
    """Sum over all axes but the last: what reaches one gain."""
    return t.flatten(0, -2).sum(0)


class LayerNormFunction(Function):
    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, gain: Tensor, shift: Tensor, eps: float) -> Tensor:
        centred = wide(x) - wide(x).mean(-1, keepdim=True)
        rstd = (centred.square().mean(-1, keepdim=True) + eps).rsqrt()
        hat = centred * rstd
        ctx.save_for_backward(hat, rstd, gain)
        return (hat * gain + shift).type_as(x)

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, dy: Tensor):
        hat, rstd, gain = ctx.saved_tensors
        dy = wide(dy)
        g = dy * gain
        along = (g * hat).mean(-1, keepdim=True)
        dx = rstd * (g - g.mean(-1, keepdim=True) - hat * along)
        dgain, dshift = over_rows(dy * hat), over_rows(dy)
        return dx.type_as(gain), dgain.type_as(gain), dshift.type_as(gain), None


class RMSNormFunction(Function):
    @staticmethod
    def forward(ctx: FunctionCtx, h: Tensor, gain: Tensor, eps: float) -> Tensor:
        inv = torch.rsqrt(wide(h).pow(2).mean(-1, keepdim=True) + eps)
        ctx.save_for_backward(h, inv, gain)
        return (wide(h) * inv * gain).type_as(h)

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, dy: Tensor):
        h, inv, gain = ctx.saved_tensors
        unit = wide(h) * inv
        g = wide(dy) * gain
        dh = inv * (g - unit * (g * unit).mean(-1, keepdim=True))
        return dh.type_as(h), over_rows(wide(dy) * unit).type_as(gain), None


class QueryInput(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_weight = nn.Parameter(torch.ones(dim))
        self.norm_bias = nn.Parameter(torch.zeros(dim))
        self.head_gain = nn.Parameter(torch.ones(dim // heads))

    def forward(self, x: Tensor) -> Tensor:
        normed = LayerNormFunction.apply(x, self.norm_weight, self.norm_bias, 1e-5)
        by_head = normed.unflatten(-1, (self.heads, -1))
        return RMSNormFunction.apply(by_head, self.head_gain, 1e-6).flatten(-2)
