"""Multi-head attention with as few key and value heads as wanted: MHA, GQA and MQA in one class."""

import math
from collections.abc import Callable
from typing import TypedDict, Unpack

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlab.references import _expect
from attnlab.references.attention import masked_softmax
from attnlab.references.cache import KVCache
from attnlab.references.heads import expand_groups, merge_heads, split_heads

# rotate(t, positions): t (B, heads, S, hd) at positions (S,) or (B, S), in the shape of t.
Rotate = Callable[[Tensor, Tensor], Tensor]


class Options(TypedDict, total=False):
    """The options of `GroupedQueryAttention`, which its variants pass on."""

    bias: bool
    dropout: float
    rotate: Rotate | None


class GroupedQueryAttention(nn.Module):
    """Self-attention whose H query heads share Hkv key and value heads, H / Hkv each.

        softmax(q k^T / sqrt(hd) + bias) v        query head h reads key head h // (H / Hkv)

    Hkv = H (`num_kv_heads` None) is multi-head attention, Hkv = 1 multi-query attention. Queries
    cost the same in all three; keys, values and the cache of them shrink by H / Hkv. No norm and
    no residual: those are the block's.

    Heads are grouped in blocks, as in Llama and `F.scaled_dot_product_attention(enable_gqa=True)`.
    x-transformers deals them out in turn, h % Hkv: to convert, reorder the query heads, which are
    rows of `q_proj` and columns of `out_proj`, from (H / Hkv, Hkv, hd) to (Hkv, H / Hkv, hd).

    Shapes
        x          (B, S, D)       batch, new positions, `embed_dim`
        mask       (B, H, S, Sk)   boolean, with 1 for B, H or S where shared; None for no mask
        bias       (B, H, S, Sk)   floating-point, likewise; added to the scores (T5, ALiBi)
        positions  (S,) or (B, S)  whole numbers for `rotate`; None counts on from the cache
        output     (B, S, D)       Sk = cache.length + S with a cache, S without one

    Mask: True means **may not be attended**; `masks` builds them. A mask for decoding is
    `causal_mask(S, cache.length + S)`. A query that may attend to nothing gets zeros as context.

    Slower than a fused kernel, by 2 to 3 times at S = 512: it writes out the scores (B, H, S, Sk),
    masks them and takes their softmax one after the other, as the formula reads.
    `F.scaled_dot_product_attention` never holds all of them.

    `dropout` falls on the weights, so a query loses whole keys; what is left is scaled by
    1 / (1 - dropout). In evaluation there is none.

    Source: "GQA: Training Generalized Multi-Query Transformer Models" (Ainslie et al., 2023)
    Rows: A5"""

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        num_kv_heads: int | None = None,
        *,
        bias: bool = True,
        dropout: float = 0.0,
        rotate: Rotate | None = None,
    ) -> None:
        super().__init__()
        self.head_dim = _expect.head_width(embed_dim, num_heads, num_kv_heads)
        _expect.probability(dropout=dropout)
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        self.dropout = dropout
        self.rotate = rotate
        kv_dim = self.num_kv_heads * self.head_dim
        self.q_proj = nn.Linear(embed_dim, embed_dim, bias=bias)
        self.k_proj = nn.Linear(embed_dim, kv_dim, bias=bias)
        self.v_proj = nn.Linear(embed_dim, kv_dim, bias=bias)
        self.out_proj = nn.Linear(embed_dim, embed_dim, bias=bias)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        *,
        bias: Tensor | None = None,
        positions: Tensor | None = None,
        cache: KVCache | None = None,
    ) -> Tensor:
        past = 0 if cache is None else cache.length
        self._check(x, mask, bias, past)
        q, k, v = self.project(x)  #                           (B, H, S, hd), 2 x (B, Hkv, S, hd)
        if self.rotate is not None:
            at = self._positions(x, positions, past)
            q, k = self.rotate(q, at), self.rotate(k, at)
        if cache is not None:
            k, v = cache.append(k, v)  #                                    2 x (B, Hkv, Sk, hd)
        k, v = expand_groups(k, self.num_heads), expand_groups(v, self.num_heads)
        scores = self.scores(q, k)  #                                       (B, H, S, Sk)
        if bias is not None:
            scores = scores + bias
        weights = F.dropout(self.weights(scores, mask), self.dropout, self.training)
        context = weights @ v  #                                            (B, H, S, hd)
        out: Tensor = self.out_proj(merge_heads(context))  #                (B, S, D)
        return out

    # Three steps that variants override.

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries of H heads, keys and values of Hkv heads."""
        q = split_heads(self.q_proj(x), self.num_heads)  #                  (B, H, S, hd)
        k = split_heads(self.k_proj(x), self.num_kv_heads)  #               (B, Hkv, S, hd)
        v = split_heads(self.v_proj(x), self.num_kv_heads)  #               (B, Hkv, S, hd)
        return q, k, v

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        """How much each query asks for each key; scaled first, so that halves do not overflow."""
        return (q / math.sqrt(self.head_dim)) @ k.transpose(-2, -1)  #      (B, H, S, Sk)

    def weights(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        return masked_softmax(scores, mask)  #                              (B, H, S, Sk)

    def new_cache(self, batch: int, max_len: int) -> KVCache:
        """An empty cache that fits this layer, of the type and on the device of its weights."""
        like = self.k_proj.weight
        return KVCache(batch, self.num_kv_heads, max_len, self.head_dim, like=like)

    def _positions(self, x: Tensor, positions: Tensor | None, past: int) -> Tensor:
        B, S, _ = x.shape
        if positions is None:
            return torch.arange(past, past + S, device=x.device)  #         (S,)
        _expect.positions(positions, B, S)
        return positions

    def _check(self, x: Tensor, mask: Tensor | None, bias: Tensor | None, past: int) -> None:
        _expect.sequence("x", x, self.q_proj)
        B, S, _ = x.shape
        scores = (B, self.num_heads, S, past + S)
        _expect.mask(mask, scores, x.device)
        _expect.bias(bias, scores)


class MultiQueryAttention(GroupedQueryAttention):
    """All query heads share one key head and one value head: `GroupedQueryAttention` with Hkv = 1.

    The cache shrinks by the number of heads, which is what decoding waits for. Slower than a fused
    kernel, for the reason given there.

    Shapes: x (B, S, D), mask (B, H, S, Sk) with 1 where shared, output (B, S, D).
    Mask: True means **may not be attended**.
    Source: "Fast Transformer Decoding" (Shazeer, 2019)
    Rows: A5"""

    def __init__(self, embed_dim: int, num_heads: int, **options: Unpack[Options]) -> None:
        super().__init__(embed_dim, num_heads, 1, **options)
