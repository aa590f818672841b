"""ALiBi: no positions in the embeddings, a penalty on the scores that grows with distance."""

import torch
from torch import Tensor, nn

from attnlab.references._arguments import check_count, check_features
from attnlab.references.relative import relative_distance


def alibi_slopes(num_heads: int) -> Tensor:
    """The slope of each head's bias, by which scores fall per position: (H,), float64.

        m_h = 2^(-8 h / H),  h = 1 ... H         H a power of two

    Otherwise, with n the power of two below H: those n, then as many as are missing of the odd
    ones for 2n, 2^(-8/(2n)), 2^(-3*8/(2n)), ..., which lie between them. BLOOM, MPT and
    x-transformers agree; in theirs too the slopes are not sorted.

    Source: "Train Short, Test Long: Attention with Linear Biases Enables Input Length
        Extrapolation" (Press et al., 2022), and its released code
    Rows: B7"""
    check_count("num_heads", num_heads)
    n = 2 ** (num_heads.bit_length() - 1)  # the largest power of two that is not above H
    whole = torch.arange(n, dtype=torch.float64) + 1  #                   1, 2, 3, ..., n
    between = torch.arange(num_heads - n, dtype=torch.float64) + 0.5  #   0.5, 1.5, 2.5, ...
    return torch.exp2(-8 / n * torch.cat((whole, between)))  #            (H,)


def alibi_bias(
    num_heads: int,
    q_len: int,
    k_len: int,
    *,
    offset: int | None = None,
    causal: bool = False,
    device: torch.device | None = None,
) -> Tensor:
    """The bias that ALiBi adds to the score of query i and key j: (H, Q, K), float64.

        -m_h |j - i|      symmetric: for attention in both directions
         m_h (j - i)      causal: the paper's, for use under a causal mask, which it does not hold

    The two agree for keys that are not after the query. Under a causal mask BLOOM's m_h * j and
    MPT's m_h * (j - K + 1) give the same weights: they differ by a constant per query, which
    softmax does not see.

    `offset` is the position of the first query, K - Q if None (see `relative_distance`).

    Source: "Train Short, Test Long: Attention with Linear Biases Enables Input Length
        Extrapolation" (Press et al., 2022)
    Rows: B7"""
    distance = relative_distance(q_len, k_len, offset=offset, device=device)  #     (Q, K)
    slopes = alibi_slopes(num_heads).to(device)[:, None, None]  #                   (H, 1, 1)
    return slopes * (distance if causal else -distance.abs())  #                    (H, Q, K)


class ALiBi(nn.Module):
    """Subtracts slope times distance from each score; no parameters, no maximum length.

    Shapes
        scores  (B, H, Q, K)  batch, `num_heads`, queries, keys; divided by sqrt(hd), before softmax
        output  (B, H, Q, K)  of the type of the scores; the sum is made in float32 at least

    In bfloat16 a bias beyond 256 slopes is rounded: distant neighbours get the same one.

    `causal` and `offset` are those of `alibi_bias`.

    Source: "Train Short, Test Long: Attention with Linear Biases Enables Input Length
        Extrapolation" (Press et al., 2022)
    Rows: B7"""

    def __init__(self, num_heads: int, *, causal: bool = False) -> None:
        super().__init__()
        check_count("num_heads", num_heads)
        self.num_heads = num_heads
        self.causal = causal

    def forward(self, scores: Tensor, *, offset: int | None = None) -> Tensor:
        check_features("scores", scores, "B H Q K", H=self.num_heads)
        _, _, Q, K = scores.shape
        bias = alibi_bias(
            self.num_heads, Q, K, offset=offset, causal=self.causal, device=scores.device
        )  #                                                             (H, Q, K)
        exact = torch.promote_types(scores.dtype, torch.float32)
        return (scores + bias.to(exact)).to(scores.dtype)  #             (B, H, Q, K)

    def bias(self, q_len: int, k_len: int, *, offset: int | None = None) -> Tensor:
        """The bias, (H, Q, K), float64."""
        return alibi_bias(self.num_heads, q_len, k_len, offset=offset, causal=self.causal)
