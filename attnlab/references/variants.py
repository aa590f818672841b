"""Attention with bounded scores: QK-norm, soft-capping and sinks.

Each class overrides one step of `GroupedQueryAttention`, so that each works with masks, caches,
rotation and shared heads as that one does, and they may be joined:

    class Both(QKNormAttention, SoftCapAttention): ...
"""

import math
from typing import Unpack

import torch
from torch import Tensor, nn

from attnlab.references.grouped import GroupedQueryAttention, Options
from attnlab.references.norms import RMSNorm


class QKNormAttention(GroupedQueryAttention):
    """Self-attention that normalises queries and keys in each head before the scores.

        softmax(norm(q) norm(k)^T / sqrt(hd)) v

    A score is then at most sqrt(hd) * max|w_q| * max|w_k|, w the weights of the two norms,
    however large x has grown, so softmax does not saturate in long training.

    The norm is `RMSNorm` over hd with one weight for all heads, before rotation, as in Qwen3 and
    Gemma 3 (whose stored weight is 1 less: add 1). OLMo 2 normalises over all of D before the
    heads are split, ViT-22B uses LayerNorm, and the first paper has L2 norms and a learned scale
    in place of sqrt(hd): these are other functions, no weights convert between them.

    Slower than a fused kernel, as `GroupedQueryAttention` is and for the same reason.

    Shapes: x (B, S, D), mask (B, H, S, Sk) with 1 where shared, output (B, S, D).
    Mask: True means **may not be attended**.
    Source: "Query-Key Normalization for Transformers" (Henry et al., 2020);
        "Scaling Vision Transformers to 22 Billion Parameters" (Dehghani et al., 2023)
    Rows: A5"""

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        num_kv_heads: int | None = None,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(embed_dim, num_heads, num_kv_heads, **options)
        self.q_norm = RMSNorm(self.head_dim)
        self.k_norm = RMSNorm(self.head_dim)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = super().project(x)
        return self.q_norm(q), self.k_norm(k), v


class SoftCapAttention(GroupedQueryAttention):
    """Self-attention whose scores are capped smoothly to (-cap, cap) before the mask.

        softmax(cap * tanh(q k^T / sqrt(hd) / cap)) v

    Before the mask, because tanh would make a forbidden key's -inf a mere -cap. A `bias` is added
    after the cap (x-transformers adds it before).

    Shapes: x (B, S, D), mask (B, H, S, Sk) with 1 where shared, output (B, S, D).
    Mask: True means **may not be attended**.
    Source: "Gemma 2: Improving Open Language Models at a Practical Size" (2024), section 2
    Rows: A5"""

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        num_kv_heads: int | None = None,
        *,
        cap: float = 50.0,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(embed_dim, num_heads, num_kv_heads, **options)
        if not 0 < cap < math.inf:
            raise ValueError(f"cap={cap}: expected a positive finite number (Gemma 2 has 50)")
        self.cap = cap

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        return soft_cap(super().scores(q, k), self.cap)  #        (B, H, S, Sk)


class SinkAttention(GroupedQueryAttention):
    """Self-attention with a learned score per head that joins the softmax but has no value.

        weight_j = exp(s_j) / (exp(sink_h) + sum over j of exp(s_j))

    So a head may attend to nothing: weights sum to less than 1, and a query whose keys are all
    forbidden gives everything to the sink. Without it heads learn to park weight on the first
    token. The sink has no key and no value (StreamingLLM's are real tokens that stay in the cache;
    `add_zero_attn` of `nn.MultiheadAttention` is a sink fixed at 0).

    Shapes: x (B, S, D), mask (B, H, S, Sk) with 1 where shared, output (B, S, D); sinks (H,).
    Mask: True means **may not be attended**.
    Source: "gpt-oss-120b & gpt-oss-20b Model Card" (OpenAI, 2025);
        "Efficient Streaming Language Models with Attention Sinks" (Xiao et al., 2024)
    Rows: A5"""

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        num_kv_heads: int | None = None,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(embed_dim, num_heads, num_kv_heads, **options)
        self.sinks = nn.Parameter(torch.zeros(num_heads))

    def weights(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        return sink_softmax(scores, self.sinks, mask)  #          (B, H, S, Sk)


def soft_cap(scores: Tensor, cap: float) -> Tensor:
    """Bound scores to (-cap, cap) by cap * tanh(scores / cap); small ones hardly change.

    Shapes: scores of any shape; output of the same.
    Source: "Gemma 2: Improving Open Language Models at a Practical Size" (2024), section 2
    Rows: A5"""
    return cap * torch.tanh(scores / cap)


def sink_softmax(scores: Tensor, sinks: Tensor, mask: Tensor | None = None) -> Tensor:
    """Softmax over the keys and one sink per head, without the sink's own weight.

    No row is empty, since the sink is never forbidden: with all keys forbidden the weights are
    zeros and the gradients finite by themselves.

    Shapes: scores (B, H, Sq, Sk), sinks (H,), mask as scores with 1 where shared; output as scores.
    Mask: boolean, True = may not be attended. Its shape is for the caller to check.
    Source: "gpt-oss-120b & gpt-oss-20b Model Card" (OpenAI, 2025)
    Rows: A5"""
    B, H, Sq, _ = scores.shape
    if tuple(sinks.shape) != (H,):
        raise ValueError(f"sinks has shape {tuple(sinks.shape)}: expected (H,) = {(H,)}")
    if mask is not None:
        scores = scores.masked_fill(mask, -math.inf)
    sink = sinks.view(1, H, 1, 1).expand(B, H, Sq, 1)
    weights = torch.cat((scores, sink), dim=-1).softmax(dim=-1)  # (B, H, Sq, Sk + 1)
    return weights[..., :-1]  #                                    (B, H, Sq, Sk)
