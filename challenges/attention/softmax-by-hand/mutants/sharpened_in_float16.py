"""Multiplies before it casts: times a sharpness of 300, float16 scores of 300 are infinite."""

from typing import Any

import torch
from torch import Tensor, nn


class SoftmaxOverKeys(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, keep: Tensor | None, sharpness: float) -> Tensor:
        z = scores * sharpness
        if keep is not None:
            z = z.masked_fill(~keep, -torch.inf)
        z = z - z.amax(-1, keepdim=True)
        w = z.exp()
        w = w / w.sum(-1, keepdim=True)
        w = torch.nan_to_num(w)
        ctx.sharpness = sharpness
        ctx.save_for_backward(w)
        return w

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (w,) = ctx.saved_tensors
        return ctx.sharpness * w * (grad - (w * grad).sum(-1, keepdim=True)), None, None


class MaskedSoftmax(nn.Module):
    def __init__(self, sharpness: float = 1.0) -> None:
        super().__init__()
        self.sharpness = sharpness

    def forward(self, scores: Tensor, keep: Tensor | None = None) -> Tensor:
        return SoftmaxOverKeys.apply(scores, keep, self.sharpness)
