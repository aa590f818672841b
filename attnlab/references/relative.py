"""Positions as a bias on the scores: distances, and the buckets of T5."""

import math

import torch
from torch import Tensor, nn

from attnlab.references._arguments import WrongDtype, check_count, check_features, check_offset


def relative_distance(
    q_len: int, k_len: int, *, offset: int | None = None, device: torch.device | None = None
) -> Tensor:
    """Key position minus query position, (Q, K), int64: negative for keys before the query.

    Keys stand at 0 ... K - 1, queries at offset ... offset + Q - 1. Without an `offset` the last
    query stands at the last key, offset = K - Q: right for a whole sequence and for every step of
    decoding with a cache.

    As an index into a table a distance needs a shift: `table[distance]` alone would wrap round at
    negative ones without a word.

    Source: "Self-Attention with Relative Position Representations" (Shaw et al., 2018)
    Rows: B7"""
    check_count("q_len", q_len, least=0)
    check_count("k_len", k_len, least=0)
    if offset is None:
        if q_len > k_len:
            raise ValueError(
                f"q_len={q_len}, k_len={k_len}: expected no more queries than keys, or an offset"
            )
        offset = k_len - q_len
    check_offset(offset)
    i = torch.arange(q_len, device=device) + offset  #       (Q,)
    j = torch.arange(k_len, device=device)  #                (K,)
    return j - i.unsqueeze(-1)  #                            (Q, K)


def t5_buckets(
    distance: Tensor, num_buckets: int = 32, max_distance: int = 128, *, bidirectional: bool = True
) -> Tensor:
    """The bucket of each key-minus-query distance, 0 ... `num_buckets` - 1, shaped as `distance`.

        n < E     bucket n, one per distance
        n >= E    bucket E + (N - E) ln(n / E) / ln(max_distance / E), rounded down, at most N - 1

    n is how far away the key is, N the number of buckets per direction, E = N/2. Bidirectional, N
    is half of `num_buckets` and keys after the query use the upper half; otherwise N is all of
    them and every key after the query counts as n = 0, for use under a causal mask.

    Edges follow the released T5, as transformers and x-transformers do: all distances from
    `max_distance` on share the last bucket, which begins before it (at 91 for 32 buckets and 128).

    Source: "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer"
        (Raffel et al., 2020), section 2.1
    Rows: B7"""
    _check_buckets(num_buckets, max_distance, bidirectional=bidirectional)
    if distance.dtype not in (torch.int64, torch.int32):
        raise WrongDtype(f"distance has dtype {distance.dtype}: expected torch.int64 or int32")
    N = num_buckets // 2 if bidirectional else num_buckets
    E = N // 2
    n = distance.abs() if bidirectional else (-distance).clamp(min=0)
    octaves = (n.clamp(min=E).double() / E).log() / math.log(max_distance / E)  # 0 at E, 1 at max
    coarse = (E + (N - E) * octaves).long().clamp(max=N - 1)
    bucket = torch.where(n < E, n, coarse)
    return bucket + N * (distance > 0) if bidirectional else bucket


class T5RelativeBias(nn.Module):
    """A learned bias per distance bucket and head, added to the scores.

        score[b, h, i, j] + W[bucket of (j - i), h]

    T5 shares one table between all layers, and does not divide its scores by sqrt(hd): its initial
    weights are smaller instead. Scores that are divided can be given here all the same, but not
    with T5's own weights.

    Shapes
        scores  (B, H, Q, K)  batch, `num_heads`, queries, keys; before softmax
        output  (B, H, Q, K)  of the type of the scores
        bias    (H, Q, K)

    `offset` is the position of the first query, K - Q if None (see `relative_distance`).

    Source: "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer"
        (Raffel et al., 2020), section 2.1
    Rows: B7"""

    def __init__(
        self,
        num_heads: int,
        num_buckets: int = 32,
        max_distance: int = 128,
        *,
        bidirectional: bool = True,
    ) -> None:
        super().__init__()
        check_count("num_heads", num_heads)
        _check_buckets(num_buckets, max_distance, bidirectional=bidirectional)
        self.num_heads = num_heads
        self.num_buckets = num_buckets
        self.max_distance = max_distance
        self.bidirectional = bidirectional
        self.relative_attention_bias = nn.Embedding(num_buckets, num_heads)
        nn.init.normal_(self.relative_attention_bias.weight, std=0.02)

    def forward(self, scores: Tensor, *, offset: int | None = None) -> Tensor:
        check_features("scores", scores, "B H Q K", H=self.num_heads)
        _, _, Q, K = scores.shape
        return scores + self.bias(Q, K, offset=offset).to(scores.dtype)  # (B, H, Q, K) + (H, Q, K)

    def bias(self, q_len: int, k_len: int, *, offset: int | None = None) -> Tensor:
        """What is added, (H, Q, K)."""
        device = self.relative_attention_bias.weight.device
        distance = relative_distance(q_len, k_len, offset=offset, device=device)
        buckets = t5_buckets(
            distance, self.num_buckets, self.max_distance, bidirectional=self.bidirectional
        )  #                                                                 (Q, K)
        values: Tensor = self.relative_attention_bias(buckets)  #            (Q, K, H)
        return values.permute(2, 0, 1)  #                                    (H, Q, K)


def _check_buckets(num_buckets: int, max_distance: int, *, bidirectional: bool) -> None:
    each = num_buckets // 2 if bidirectional else num_buckets
    if each < 2 or (bidirectional and num_buckets % 2):
        wanted = "an even number from 4" if bidirectional else "2 or more"
        raise ValueError(f"num_buckets={num_buckets}: expected {wanted}")
    if max_distance <= each // 2:
        raise ValueError(
            f"max_distance={max_distance}: expected more than {each // 2}, "
            "the distances that have a bucket each"
        )
