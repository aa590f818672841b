"""Heads: one fused projection split into queries, keys and values, and each of them into heads.

A fused projection gives 3 * D features per position. In the usual layout (GPT-2, BERT-like models,
`nn.MultiheadAttention`) they are ordered as (3, H, hd): all queries, then all keys, then all
values, and inside each of them head after head. The `qkv_by_...` functions are ways to write the
same split of that layout; their results are equal to the last bit.
"""

import torch
from torch import Tensor

from attnlab.references import _expect

QKV = tuple[Tensor, Tensor, Tensor]


def split_heads(t: Tensor, num_heads: int) -> Tensor:
    """Split the last axis into heads of hd neighbouring features: (B, S, H*hd) -> (B, H, S, hd).

    The reshape cuts the features alone; then the axes change places. A single reshape to
    (B, H, S, hd) has the right shape and mixes positions with heads.

    Shapes: t (B, S, D); output (B, H, S, D/H), a view.
    Source: "Attention Is All You Need" (Vaswani et al., 2017), section 3.2.2
    Rows: A3"""
    if t.dim() != 3:
        raise ValueError(f"t has shape {tuple(t.shape)}: expected (B, S, D)")
    B, S, D = t.shape
    hd = _expect.head_width(D, num_heads)
    return t.reshape(B, S, num_heads, hd).transpose(1, 2)  #      (B, H, S, hd)


def merge_heads(t: Tensor) -> Tensor:
    """Concatenate the heads, the inverse of `split_heads`: (B, H, S, hd) -> (B, S, H*hd).

    Shapes: t (B, H, S, hd); output (B, S, H*hd), a copy, since the heads lay apart.
    Source: "Attention Is All You Need" (Vaswani et al., 2017), section 3.2.2
    Rows: A3"""
    if t.dim() != 4:
        raise ValueError(f"t has shape {tuple(t.shape)}: expected (B, H, S, hd)")
    return t.transpose(1, 2).flatten(2)  #                        (B, S, H*hd)


def expand_groups(t: Tensor, num_heads: int) -> Tensor:
    """Repeat shared key or value heads so that query head h gets head h // (H / Hkv).

    Each is repeated in place (0, 0, 1, 1), never the whole row of them (0, 1, 0, 1).

    Shapes: t (B, Hkv, S, hd); output (B, H, S, hd), H = `num_heads`.
    Source: "GQA: Training Generalized Multi-Query Transformer Models" (Ainslie et al., 2023)
    Rows: A5"""
    if t.dim() != 4 or t.shape[1] < 1 or num_heads % t.shape[1]:
        raise ValueError(
            f"t has shape {tuple(t.shape)}: expected (B, Hkv, S, hd) "
            f"with num_heads={num_heads} a multiple of Hkv"
        )
    return t.repeat_interleave(num_heads // t.shape[1], dim=1)  #  (B, H, S, hd)


def qkv_by_chunk(qkv: Tensor, num_heads: int) -> QKV:
    """Chunk the last axis into three, then split each into heads.

    Shapes: qkv (B, S, 3*D); output (B, H, S, hd) each.
    Source: GPT-2 (Radford et al., 2019)
    Rows: A3"""
    _check(qkv, num_heads)
    q, k, v = qkv.chunk(3, dim=-1)  #                             (B, S, D) each
    return split_heads(q, num_heads), split_heads(k, num_heads), split_heads(v, num_heads)


def qkv_by_unbind(qkv: Tensor, num_heads: int) -> QKV:
    """Unflatten into all axes at once, then move the axis of q, k and v to the front and unbind it.

    `unbind(0)` takes that axis away. `chunk(3, dim=0)` would leave it with size 1.

    Shapes: qkv (B, S, 3*D); output (B, H, S, hd) each.
    Source: vision transformers (Dosovitskiy et al., 2021)
    Rows: A3"""
    B, S, hd = _check(qkv, num_heads)
    axes = qkv.reshape(B, S, 3, num_heads, hd).permute(2, 0, 3, 1, 4)  #     (3, B, H, S, hd)
    q, k, v = axes.unbind(0)
    return q, k, v


def qkv_by_heads(qkv: Tensor, num_heads: int) -> QKV:
    """Split into 3*H heads first, then those into three groups of H.

    Shapes: qkv (B, S, 3*D); output (B, H, S, hd) each.
    Source: "Attention Is All You Need" (Vaswani et al., 2017), section 3.2.2
    Rows: A3"""
    B, S, hd = _check(qkv, num_heads)
    heads = qkv.reshape(B, S, 3 * num_heads, hd).transpose(1, 2)  #          (B, 3*H, S, hd)
    axes = heads.reshape(B, 3, num_heads, S, hd).permute(1, 0, 2, 3, 4)  #   (3, B, H, S, hd)
    q, k, v = axes.unbind(0)
    return q, k, v


def qkv_by_einsum(qkv: Tensor, num_heads: int) -> QKV:
    """Permute with named letters in einsum: c is the axis of q, k and v.

    Shapes: qkv (B, S, 3*D); output (B, H, S, hd) each.
    Source: "Attention Is All You Need" (Vaswani et al., 2017), section 3.2.2
    Rows: A3"""
    B, S, hd = _check(qkv, num_heads)
    axes = qkv.reshape(B, S, 3, num_heads, hd)  #                            (B, S, 3, H, hd)
    q, k, v = torch.einsum("b s c h d -> c b h s d", axes)
    return q, k, v


def qkv_by_select(qkv: Tensor, num_heads: int) -> QKV:
    """Unflatten the last axis and select its three parts by index.

    Shapes: qkv (B, S, 3*D); output (B, H, S, hd) each.
    Source: "Attention Is All You Need" (Vaswani et al., 2017), section 3.2.2
    Rows: A3"""
    _, _, hd = _check(qkv, num_heads)
    axes = torch.unflatten(qkv, -1, (3, num_heads, hd)).transpose(1, 3)  #   (B, H, 3, S, hd)
    return axes[:, :, 0], axes[:, :, 1], axes[:, :, 2]


def to_stacked_layout(weight: Tensor, num_heads: int) -> Tensor:
    """Rows of a fused projection from the layout (H, 3, hd) to (3, H, hd), the one used here.

    GPT-NeoX and BLOOM keep q, k and v of a head together. Split as if they did not, such weights
    give outputs of the right shape and wrong values.

    Shapes: weight (3*D, ...), or a bias (3*D,); output of the same shape.
    Source: "GPT-NeoX-20B" (Black et al., 2022)
    Rows: A3"""
    rows = weight.shape[0]
    if num_heads < 1 or rows % (3 * num_heads):
        raise ValueError(
            f"weight has {rows} rows: expected a multiple of 3 * num_heads = {3 * num_heads}"
        )
    # (H, 3, hd, ...) -> (3, H, hd, ...)
    per_head = torch.unflatten(weight, 0, (num_heads, 3, rows // (3 * num_heads)))
    return per_head.transpose(0, 1).flatten(0, 2)


def _check(qkv: Tensor, num_heads: int) -> tuple[int, int, int]:
    """B, S and hd."""
    if qkv.dim() != 3 or num_heads < 1 or qkv.shape[-1] % (3 * num_heads):
        raise ValueError(
            f"qkv has shape {tuple(qkv.shape)}: expected (B, S, 3*D) with D a multiple of "
            f"num_heads={num_heads}"
        )
    B, S, width = qkv.shape
    return B, S, width // (3 * num_heads)
