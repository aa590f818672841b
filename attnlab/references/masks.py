"""Masks: which query may not attend to which key.

Every mask here is boolean, **True = may not be attended**, and has four axes (B, H, Sq, Sk), of
size 1 where it is the same for all. Four always: a (B, Sk) padding mask would be taken for
(Sq, Sk) whenever B = Sq. Masks are joined by `combine` (or by `|`, which checks less).

PyTorch itself uses both conventions:

    F.scaled_dot_product_attention(q, k, v, attn_mask=~mask)        True = may attend
    nn.MultiheadAttention: key_padding_mask=mask[:, 0, 0], attn_mask=mask[0, 0]       as here

Queries stand at the end of the keys: query i of Sq is at position i + Sk - Sq ("bottom-right"
alignment). So Sq = 1 is one decoding step over a cache of Sk - 1 keys. The `is_causal=True` of
`F.scaled_dot_product_attention` aligns top-left instead: there a single query sees key 0 alone.
"""

import math
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from attnlab.references import _expect
from attnlab.references._arguments import WrongDtype

Device = torch.device | str | None


def causal_mask(q_len: int, k_len: int | None = None, *, device: Device = None) -> Tensor:
    """No query attends to a later position: True where j > i + Sk - Sq.

    Shapes: output (1, 1, Sq, Sk); `k_len` None means Sk = Sq. With Sq > Sk the first Sq - Sk
    queries stand before all keys, and their rows are all True.
    Source: "Attention Is All You Need" (Vaswani et al., 2017), section 3.2.3
    Rows: A4"""
    i, j = _positions(q_len, k_len, device)
    return (j > i)[None, None]


def sliding_window_mask(
    q_len: int,
    k_len: int | None = None,
    *,
    window: int,
    two_sided: bool = False,
    device: Device = None,
) -> Tensor:
    """Each query attends to itself and the `window - 1` positions before it: 0 <= i - j < window.

    So `window` counts the keys that are seen, as in Mistral and `transformers`. Where a library
    counts the steps back instead (flash-attn's `window_size=(left, 0)`), left = window - 1.
    `two_sided` looks ahead as far as back, |i - j| < window, for encoders.

    Shapes: output (1, 1, Sq, Sk), queries at the end of the keys.
    Source: "Longformer" (Beltagy et al., 2020), section 3.1;
        "Mistral 7B" (Jiang et al., 2023), section 2
    Rows: A4"""
    _expect.positive(window=window)
    i, j = _positions(q_len, k_len, device)
    distance = i - j  #                                           (Sq, Sk)  > 0: back, < 0: ahead
    if two_sided:
        return (distance.abs() >= window)[None, None]
    return ((distance < 0) | (distance >= window))[None, None]


def prefix_mask(prefix: Tensor, q_len: int, k_len: int | None = None) -> Tensor:
    """Prefix-LM: every query may attend to the whole prefix; after it the mask is causal.

    Shapes: prefix (B,), how many positions it has in each sequence; output (B, 1, Sq, Sk).
    Source: "Exploring the Limits of Transfer Learning" (T5; Raffel et al., 2020), section 3.2.1
    Rows: A4"""
    i, j = _positions(q_len, k_len, prefix.device)
    _expect.integers("prefix", prefix, "(B,)")
    _expect.within("prefix", prefix, 0, j.shape[-1])
    return ((j > i) & (j >= prefix[:, None, None]))[:, None]


def padding_mask(
    lengths: Tensor, k_len: int, *, side: Literal["left", "right"] = "right"
) -> Tensor:
    """Padding keys, which fill a sequence up to the longest, are not attended.

    Shapes: lengths (B,), the real positions of each sequence; output (B, 1, 1, Sk). `side` says
    where the padding stands: "left" puts it before the sequence, as for generation in batches.
    Source: "Attention Is All You Need" (Vaswani et al., 2017)
    Rows: A4"""
    _expect.integers("lengths", lengths, "(B,)")
    _expect.within("lengths", lengths, 0, k_len)
    if side not in ("left", "right"):
        raise ValueError(f"side={side!r}: expected 'left' or 'right', where the padding stands")
    j = torch.arange(k_len, device=lengths.device)  #              (Sk,)
    if side == "right":
        return (j >= lengths[:, None])[:, None, None]
    return (j < k_len - lengths[:, None])[:, None, None]


def padding_mask_of(ids: Tensor, pad_id: int) -> Tensor:
    """The padding mask of token ids: True where the id is `pad_id`.

    Where `pad_id` is a token of the text too (GPT-2 has no other to pad with than its end mark),
    only lengths tell them apart: `padding_mask`.

    Shapes: ids (B, Sk); output (B, 1, 1, Sk).
    Source: "Attention Is All You Need" (Vaswani et al., 2017)
    Rows: A4"""
    _expect.integers("ids", ids, "(B, S)")
    return (ids == pad_id)[:, None, None]


def packed_mask(segments: Tensor, key_segments: Tensor | None = None) -> Tensor:
    """Sequences packed in one row do not attend to each other: True where the segments differ.

    Block-diagonal where segments stand one after another. It is combined with a causal mask for a
    decoder; positions begin anew in each segment (`segment_positions`).

    Shapes: segments (B, Sq), `key_segments` (B, Sk) or None for the same; output (B, 1, Sq, Sk).
    Source: "Efficient Sequence Packing without Cross-contamination" (Krell et al., 2021)
    Rows: A4"""
    key_segments = segments if key_segments is None else key_segments
    _expect.integers("segments", segments, "(B, S)")
    _expect.integers("key_segments", key_segments, "(B, S)")
    if segments.shape[0] != key_segments.shape[0]:
        raise ValueError(
            f"segments has shape {tuple(segments.shape)}, key_segments "
            f"{tuple(key_segments.shape)}: expected the same batch size B"
        )
    return (segments[:, :, None] != key_segments[:, None, :])[:, None]


def segment_ids(lengths: Sequence[int], *, device: Device = None) -> Tensor:
    """The segments of one packed row from its lengths: [2, 3] gives [[0, 0, 1, 1, 1]].

    Shapes: output (1, S), S the sum of the lengths.
    Source: "Efficient Sequence Packing without Cross-contamination" (Krell et al., 2021)
    Rows: A4"""
    counts = torch.tensor(lengths, dtype=torch.int64, device=device)
    if (counts < 0).any():
        raise ValueError(f"lengths={list(lengths)}: expected numbers of positions, 0 or more")
    return torch.arange(len(lengths), device=device).repeat_interleave(counts)[None]


def segment_positions(segments: Tensor) -> Tensor:
    """Positions that restart in each segment: [[0, 0, 1, 1, 1]] gives [[0, 1, 0, 1, 2]].

    Shapes: segments (B, S), each segment in one piece; output (B, S).
    Source: "Efficient Sequence Packing without Cross-contamination" (Krell et al., 2021)
    Rows: A4"""
    _expect.integers("segments", segments, "(B, S)")
    i = torch.arange(segments.shape[1], device=segments.device)  #            (S,)
    first = torch.ones_like(segments, dtype=torch.bool)
    first[:, 1:] = segments[:, 1:] != segments[:, :-1]  #                     (B, S)
    start = torch.where(first, i, 0).cummax(dim=1).values  #                  (B, S)
    return i - start


def combine(*masks: Tensor | None) -> Tensor | None:
    """The union of masks: True where any of them is; None masks nothing.

    Shapes: each (B, H, Sq, Sk) with 1 where shared; output of the largest sizes. None for none.
    Source: "Attention Is All You Need" (Vaswani et al., 2017), section 3.2.3
    Rows: A4"""
    given = [mask for mask in masks if mask is not None]
    for n, mask in enumerate(given):
        if mask.dtype != torch.bool:
            raise WrongDtype(f"mask {n} has dtype {mask.dtype}: expected torch.bool")
        if mask.dim() != 4:
            raise ValueError(f"mask {n} has shape {tuple(mask.shape)}: expected (B, H, Sq, Sk)")
        if mask.device != given[0].device:
            raise ValueError(f"mask {n} is on {mask.device}: expected {given[0].device}, as mask 0")
    joined = None
    for mask in given:
        if joined is not None and not _can_broadcast(joined, mask):
            shapes = ", ".join(str(tuple(each.shape)) for each in given)
            raise ValueError(f"masks of shapes {shapes}: expected the same sizes, 1 where shared")
        joined = mask if joined is None else joined | mask
    return joined


def to_additive(mask: Tensor, dtype: torch.dtype, *, finite: bool = False) -> Tensor:
    """The additive mask for scores of type `dtype`: -inf where it forbids, 0 elsewhere.

    `finite` takes the lowest number of `dtype` instead, as many libraries do. It differs where all
    keys are forbidden: softmax of a row of -inf is NaN, of equal lowest numbers uniform (and the
    forbidden keys get weight). In neither form is the row zeros, which is what `masked_softmax`
    makes of the boolean mask; and two finite masks may overflow to -inf when they are added.

    Shapes: mask of any shape; output of the same.
    Source: "Attention Is All You Need" (Vaswani et al., 2017), section 3.2.3
    Rows: A4"""
    if mask.dtype != torch.bool:
        raise WrongDtype(f"mask has dtype {mask.dtype}: expected torch.bool")
    if not dtype.is_floating_point:
        raise WrongDtype(f"dtype={dtype}: expected a floating-point type, that of the scores")
    lowest = torch.finfo(dtype).min if finite else -math.inf
    return torch.zeros_like(mask, dtype=dtype).masked_fill(mask, lowest)


def to_boolean(additive: Tensor) -> Tensor:
    """The boolean mask of an additive one: True where it holds -inf or the lowest of its type.

    Shapes: any; output of the same.
    Source: "Attention Is All You Need" (Vaswani et al., 2017), section 3.2.3
    Rows: A4"""
    if not additive.is_floating_point():
        raise WrongDtype(f"additive has dtype {additive.dtype}: expected a floating-point type")
    mask = additive <= torch.finfo(additive.dtype).min
    other = additive[~mask & (additive != 0)]
    if other.numel():
        raise ValueError(
            f"additive holds {other[0].item():g}: expected only 0, -inf or the lowest number of "
            f"{additive.dtype}; other numbers are a bias, which weakens keys and forbids none"
        )
    return mask


def _can_broadcast(a: Tensor, b: Tensor) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(a.shape, b.shape, strict=True))


def _positions(q_len: int, k_len: int | None, device: Device) -> tuple[Tensor, Tensor]:
    """Positions of the queries (Sq, 1) and keys (1, Sk), on one axis that ends with both."""
    k_len = q_len if k_len is None else k_len
    if q_len < 0 or k_len < 0:
        raise ValueError(f"q_len={q_len}, k_len={k_len}: expected numbers of positions, 0 or more")
    i = torch.arange(q_len, device=device) + (k_len - q_len)
    return i[:, None], torch.arange(k_len, device=device)[None, :]
