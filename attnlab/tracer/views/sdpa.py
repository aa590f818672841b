"""`F.scaled_dot_product_attention` step by step, to show its inner values."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from attnlab.tracer.views.attention_heads import BARRED
from attnlab.tracer.views.heatmap import unwrap

NAMES = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa")


class AttentionSteps(NamedTuple):
    scores: Tensor  # (..., H, Sq, Sk), before the mask
    allowed: Tensor  # bool, which broadcasts to the scores
    weights: Tensor
    context: Tensor


def attention_steps(args: tuple[Any, ...], kwargs: dict[str, Any]) -> AttentionSteps:
    """The same attention from the same arguments, without dropout."""
    given = {**dict(zip(NAMES, args, strict=False)), **kwargs}
    given = {n: unwrap(v) if isinstance(v, Tensor) else v for n, v in given.items()}
    q, k, v = (given[n].detach() for n in NAMES[:3])
    if q.dtype in (torch.float16, torch.bfloat16):
        q, k, v = q.float(), k.float(), v.float()
    if given.get("enable_gqa"):
        k, v = (t.repeat_interleave(q.shape[-3] // t.shape[-3], dim=-3) for t in (k, v))
    scale = given.get("scale")
    scores = q @ k.transpose(-2, -1) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    allowed = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device)
    mask = given.get("attn_mask")
    if given.get("is_causal"):  # counted from the first key, whatever the lengths are
        allowed = allowed.tril()
    elif mask is not None and mask.dtype is torch.bool:
        allowed = mask  # True may be attended
    masked = scores.masked_fill(~allowed, -torch.inf)
    if mask is not None and mask.dtype is not torch.bool:
        masked = scores + mask.to(scores.dtype)
        allowed = masked > BARRED
    weights = masked.softmax(-1)
    empty = ~allowed.any(-1, keepdim=True)
    weights = weights.masked_fill(empty & weights.isnan(), 0.0)  # as the kernel does it
    return AttentionSteps(scores, allowed, weights, weights @ v)
