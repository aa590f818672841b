"""Masks by adding: a NaN at a closed key stays NaN, spoils its row, and is made 0 at the end."""

from typing import Any

import torch
from torch import Tensor, nn


class SoftmaxOverKeys(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, keep: Tensor | None, sharpness: float) -> Tensor:
        z = scores.to(torch.promote_types(scores.dtype, torch.float32)) * sharpness
        if keep is not None:
            z = z + torch.zeros_like(z).masked_fill(~keep, -torch.inf)
        z = z - z.amax(-1, keepdim=True)
        w = z.exp()
        w = w / w.sum(-1, keepdim=True)
        w = torch.nan_to_num(w).to(scores.dtype)
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
