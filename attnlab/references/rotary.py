"""Rotary positions (RoPE): each pair of a query or key is rotated by its position.

    (a, b) at position m  ->  (a cos m w_i - b sin m w_i,  a sin m w_i + b cos m w_i)
    w_i = base^(-2i/D),  i = 0 ... D/2 - 1

The score of a query at m and a key at n then depends on their contents and m - n alone:
rotating both by the same angle changes no dot product.
"""

import torch
from torch import Tensor, nn

from attnlab.references._arguments import (
    check_base,
    check_choice,
    check_count,
    check_features,
    check_width,
    resolve_positions,
)
from attnlab.references.positional import sinusoidal_frequencies
from attnlab.references.rotary_scaling import RotaryScaling

LAYOUTS = ("interleaved", "half")


def rotary_frequencies(
    dim: int,
    base: float = 10000.0,
    *,
    scaling: RotaryScaling | None = None,
    length: Tensor | int = 1,
    device: torch.device | None = None,
) -> Tensor:
    """Radians per position of each pair, fastest first: w_i = base^(-2i/dim), (dim/2,), float64.

    `scaling` changes them for long sequences; `length`, the highest position in use plus 1, matters
    to the recipes that adapt to it.

    Source: "RoFormer: Enhanced Transformer with Rotary Position Embedding" (Su et al., 2021)
    Rows: B7"""
    check_width("dim", dim)
    w = sinusoidal_frequencies(dim, base, device=device)  # (dim/2,)
    return w if scaling is None else scaling.frequencies(w, base=base, length=length)


def rotate_pairs(x: Tensor, cos: Tensor, sin: Tensor, layout: str = "interleaved") -> Tensor:
    """Rotate every pair of the last axis by its angle: x (..., D), cos and sin (..., D/2).

    "interleaved" pairs neighbours, (x0, x1), (x2, x3), ...: RoFormer, GPT-J, Meta's Llama,
    rotary-embedding-torch, x-transformers. "half" pairs column i with column i + D/2: GPT-NeoX and
    the Llama of transformers. `to_half_layout` converts weights from the first to the second.

    Source: "RoFormer: Enhanced Transformer with Rotary Position Embedding" (Su et al., 2021)
    Rows: B7"""
    check_choice("layout", layout, LAYOUTS)
    if layout == "interleaved":
        a, b = x[..., 0::2], x[..., 1::2]  #                                     (..., D/2) each
        return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)
    a, b = x.chunk(2, dim=-1)  #                                                 (..., D/2) each
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)


def rotary_table(
    seq_len: int,
    dim: int,
    base: float = 10000.0,
    *,
    layout: str = "interleaved",
    scaling: RotaryScaling | None = None,
) -> Tensor:
    """The vector (1, 0, 1, 0, ...) rotated to each position, (S, dim), float64: cosines and sines.

    The dot product of rows m and n is the score of that vector as query and key,
    sum_i cos((m - n) w_i).

    Source: "RoFormer: Enhanced Transformer with Rotary Position Embedding" (Su et al., 2021)
    Rows: B7"""
    check_count("seq_len", seq_len, least=0)
    w = rotary_frequencies(dim, base, scaling=scaling, length=seq_len)  #     (dim/2,)
    angles = torch.outer(torch.arange(seq_len, dtype=w.dtype), w)  #          (S, dim/2)
    x = torch.tensor([1.0, 0.0], dtype=w.dtype).repeat(dim // 2)  #           1, 0, 1, 0, ...
    if layout == "half":
        x = x.view(-1, 2).T.flatten()  #                                      1, 1, ..., 0, 0, ...
    return rotate_pairs(x, angles.cos(), angles.sin(), layout)


class RotaryEmbedding(nn.Module):
    """Rotates queries and keys by their positions, so that scores depend on contents and distance.

    The first `rotary_dim` columns of each head are rotated (all if None), the rest are unchanged.
    Angles are computed in float64 at every call, whatever the dtype of the module, which holds no
    buffer that `.to(bfloat16)` could round; half types are rotated in float32.

    Shapes
        q             (B, H, S, hd)    batch, heads, sequence, `head_dim`
        k             (B, Hkv, S, hd)  any number of heads; the same S positions
        position_ids  (B, S) or (S,)   whole numbers from 0; None for offset ... offset + S - 1
        output        q and k, with unchanged shapes

    Decoding with a cache: rotate the new q and k with `offset` the number of cached keys, then
    append k to the cache, which holds rotated keys.

    Source: "RoFormer: Enhanced Transformer with Rotary Position Embedding" (Su et al., 2021)
    Rows: B7"""

    def __init__(
        self,
        head_dim: int,
        *,
        rotary_dim: int | None = None,
        base: float = 10000.0,
        layout: str = "interleaved",
        scaling: RotaryScaling | None = None,
    ) -> None:
        super().__init__()
        check_width("head_dim", head_dim)
        rotary_dim = head_dim if rotary_dim is None else rotary_dim
        check_width("rotary_dim", rotary_dim)
        if rotary_dim > head_dim:
            raise ValueError(
                f"rotary_dim={rotary_dim}: expected at most head_dim = {head_dim} columns"
            )
        check_base(base)
        check_choice("layout", layout, LAYOUTS)
        self.head_dim = head_dim
        self.rotary_dim = rotary_dim
        self.base = base
        self.layout = layout
        self.scaling = scaling
        rotary_frequencies(rotary_dim, base, scaling=scaling)  # raises here for a bad scaling

    def forward(
        self, q: Tensor, k: Tensor, position_ids: Tensor | None = None, *, offset: int = 0
    ) -> tuple[Tensor, Tensor]:
        check_features("q", q, "B H S hd", hd=self.head_dim)
        B, _, S, _ = q.shape
        check_features("k", k, "B Hkv S hd", B=B, S=S, hd=self.head_dim)
        cos, sin = self._angles(q, position_ids, offset)  #                 (1 or B, 1, S, rd/2)
        return self._rotate(q, cos, sin), self._rotate(k, cos, sin)

    def rotate(self, x: Tensor, position_ids: Tensor | None = None, *, offset: int = 0) -> Tensor:
        """One of the two alone, (B, H, S, hd): for queries and keys at different positions."""
        check_features("x", x, "B H S hd", hd=self.head_dim)
        return self._rotate(x, *self._angles(x, position_ids, offset))

    def _angles(self, x: Tensor, position_ids: Tensor | None, offset: int) -> tuple[Tensor, Tensor]:
        B, _, S, _ = x.shape
        p = resolve_positions(B, S, position_ids, offset, device=x.device)  # (1 or B, S)
        length = p.amax() + 1 if self.scaling is not None and p.numel() else 1
        w = rotary_frequencies(
            self.rotary_dim, self.base, scaling=self.scaling, length=length, device=x.device
        )  #                                                                 (rd/2,)
        angles = (p.unsqueeze(-1) * w).unsqueeze(1)  #                       (1 or B, 1, S, rd/2)
        factor = 1.0 if self.scaling is None else self.scaling.attention_factor
        exact = torch.promote_types(x.dtype, torch.float32)
        return (factor * angles.cos()).to(exact), (factor * angles.sin()).to(exact)

    def _rotate(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        turning, passing = x[..., : self.rotary_dim], x[..., self.rotary_dim :]
        turned = rotate_pairs(turning, cos, sin, self.layout).to(x.dtype)
        if self.rotary_dim == self.head_dim:
            return turned
        return torch.cat((turned, passing), dim=-1)  #                       (B, H, S, hd)


def to_half_layout(weight: Tensor, num_heads: int, rotary_dim: int | None = None) -> Tensor:
    """A query or key projection for "interleaved" RoPE, reordered for "half" RoPE.

    The weight is (H*hd, D), or its bias (H*hd,). Within each head the even columns go to the first
    half and the odd ones to the second; the scores stay what they were. Only the first `rotary_dim`
    columns of a head move (all if None). Values and output projection stay as they are.

    Source: the conversion of Meta's Llama weights for transformers
    Rows: B7"""
    return _reorder(weight, num_heads, rotary_dim, inverse=False)


def to_interleaved_layout(weight: Tensor, num_heads: int, rotary_dim: int | None = None) -> Tensor:
    """A query or key projection for "half" RoPE, reordered for "interleaved" RoPE.

    The inverse of `to_half_layout`; shapes and errors as there.

    Source: the conversion of Meta's Llama weights for transformers
    Rows: B7"""
    return _reorder(weight, num_heads, rotary_dim, inverse=True)


def _reorder(weight: Tensor, num_heads: int, rotary_dim: int | None, *, inverse: bool) -> Tensor:
    check_count("num_heads", num_heads)
    if weight.dim() not in (1, 2) or weight.shape[0] % num_heads:
        raise ValueError(
            f"weight has shape {tuple(weight.shape)}: expected (H*hd, D) or (H*hd,) with "
            f"H = num_heads = {num_heads}"
        )
    hd = weight.shape[0] // num_heads
    rotary_dim = hd if rotary_dim is None else rotary_dim
    check_width("rotary_dim", rotary_dim)
    if rotary_dim > hd:
        raise ValueError(f"rotary_dim={rotary_dim}: expected at most {hd}, the width of a head")
    order = torch.arange(hd)
    order[:rotary_dim] = order[:rotary_dim].view(-1, 2).T.flatten()  #       0, 2, 4, ..., 1, 3, 5
    if inverse:
        order = order.argsort()
    heads = weight.reshape(num_heads, hd, *weight.shape[1:])  #              (H, hd, D) or (H, hd)
    return heads[:, order].flatten(0, 1)
