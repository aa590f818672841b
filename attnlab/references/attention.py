"""Self-attention as in "Attention Is All You Need" (Vaswani et al., 2017), section 3.2."""

import math

import torch
from torch import Tensor, nn

from attnlab.references import _expect
from attnlab.references._arguments import WrongDtype


class MultiHeadSelfAttention(nn.Module):
    """Multi-head self-attention with one fused projection for queries, keys and values.

    `forward(x, mask)` gives `norm(out_proj(attention)) + x`. The norm stands on the branch: this is
    neither the post-norm block `norm(x + f(x))` nor the pre-norm block `x + f(norm(x))`.

    Shapes
        x       (B, S, D)  batch, sequence, `embed_dim`; of the weights' floating-point type
        mask    (B, S, S)  boolean, query by key, or None for no mask
        output  (B, S, D)

    Mask: True means **may not be attended**, as in `nn.MultiheadAttention`; the masks of
    `F.scaled_dot_product_attention` mean the opposite. A query that may attend to nothing gets a
    context of zeros, and its gradients are finite.

    Source: "Attention Is All You Need" (Vaswani et al., 2017), section 3.2
    Rows: A1"""

    def __init__(self, embed_dim: int, num_heads: int) -> None:
        super().__init__()
        self.head_dim = _expect.head_width(embed_dim, num_heads)
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.qkv_proj = nn.Linear(embed_dim, 3 * embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)
        self.norm = nn.LayerNorm(embed_dim)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        self._check(x, mask)
        q, k, v = self.qkv_proj(x).chunk(3, dim=-1)  #                       (B, S, D) each
        q, k, v = self._split(q), self._split(k), self._split(v)  #          (B, H, S, hd) each
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)  #       (B, H, S, S)
        weights = masked_softmax(scores, None if mask is None else mask.unsqueeze(1))
        context = weights @ v  #                                             (B, H, S, hd)
        merged = context.transpose(1, 2).flatten(2)  #                       (B, S, D)
        branch: Tensor = self.norm(self.out_proj(merged))  #                 (B, S, D)
        return branch + x

    def _split(self, t: Tensor) -> Tensor:
        """(B, S, D) -> (B, H, S, hd): each head takes hd neighbouring features."""
        B, S, _ = t.shape
        return t.reshape(B, S, self.num_heads, self.head_dim).transpose(1, 2)

    def _check(self, x: Tensor, mask: Tensor | None) -> None:
        if x.dim() != 3 or x.shape[-1] != self.embed_dim:
            raise ValueError(
                f"x has shape {tuple(x.shape)}: expected (B, S, D) with D = {self.embed_dim}"
            )
        if mask is None:
            return
        if mask.dtype != torch.bool:
            raise WrongDtype(
                f"mask has dtype {mask.dtype}: expected torch.bool, True where a query may not "
                "attend (an additive mask of 0 and -inf becomes one by `mask == -inf`)"
            )
        B, S, _ = x.shape
        if tuple(mask.shape) != (B, S, S):
            raise ValueError(
                f"mask has shape {tuple(mask.shape)}: expected (B, S, S) = {(B, S, S)} "
                f"(a mask that all sequences share becomes one by `mask.expand({B}, {S}, {S})`)"
            )


def masked_softmax(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """Softmax over the keys, with exactly 0 at forbidden ones.

    A row whose keys are all forbidden is all zeros, and its gradients are zeros too: the query
    then gets a context of zeros. Two fixes that are often tried instead are wrong: `nan_to_num`
    on the scores gives the forbidden keys weight, and an additive -inf mask with `nan_to_num` on
    the weights has zeros in the output and NaN in the gradients.

    Shapes: scores (..., Sq, Sk), mask of the same axes with 1 where shared; output as scores.
    Mask: boolean, True = may not be attended. Its shape is for the caller to check.
    Source: "Attention Is All You Need" (Vaswani et al., 2017), section 3.2.1
    Rows: A1, A4"""
    if mask is None:
        return scores.softmax(dim=-1)
    # A row of nothing but -inf would make NaN, which later zeros hide in the output but not from
    # anomaly detection. So such a row keeps its scores here, and loses its weights below.
    empty = mask.all(dim=-1, keepdim=True)  #                                (..., Sq, 1)
    weights = scores.masked_fill(mask & ~empty, -math.inf).softmax(dim=-1)
    return weights.masked_fill(empty, 0.0)
