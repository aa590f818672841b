"""The softmax of an attention layer, with the mask inside and the gradient by hand."""

from typing import Any

import torch
from torch import Tensor, nn


class SoftmaxOverKeys(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, keep: Tensor | None, sharpness: float) -> Tensor:
        logits = sharpness * scores.to(torch.promote_types(scores.dtype, torch.float32))
        if keep is not None:
            logits = logits.masked_fill(~keep, -torch.inf)
        peak = logits.amax(dim=-1, keepdim=True)
        peak = peak.masked_fill(peak == -torch.inf, 0.0)  # -inf minus -inf would be NaN
        powers = torch.exp(logits - peak)
        total = powers.sum(dim=-1, keepdim=True)
        weights = powers / total.masked_fill(total == 0, 1.0)
        ctx.save_for_backward(weights)
        ctx.sharpness = sharpness
        return weights.to(scores.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (weights,) = ctx.saved_tensors
        weighted = grad * weights
        common = weighted.sum(dim=-1, keepdim=True)
        grad_scores = ctx.sharpness * (weighted - weights * common)
        return grad_scores.to(grad.dtype), None, None


class MaskedSoftmax(nn.Module):
    """Scores (B, H, Sq, Sk) to weights of the same shape."""

    def __init__(self, sharpness: float = 1.0) -> None:
        super().__init__()
        self.sharpness = sharpness

    def forward(self, scores: Tensor, keep: Tensor | None = None) -> Tensor:
        return SoftmaxOverKeys.apply(scores, keep, self.sharpness)
