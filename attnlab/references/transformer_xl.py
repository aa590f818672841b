"""Transformer-XL: attention that includes the previous segment, by content and by distance.

    score[i, j] = ( (q_i + u) . k_j  +  (q_i + v) . r_(i-j) ) / sqrt(hd)

k_j comes from the contents at j, r_d from a sinusoid of the distance d = i - j; u and v are what
every query asks for, in content and in distance.
"""

import math

import torch
from torch import Tensor, nn

from attnlab.references import _expect
from attnlab.references._arguments import WrongDtype, check_count, check_features, check_width
from attnlab.references.attention import masked_softmax
from attnlab.references.heads import merge_heads, split_heads
from attnlab.references.positional import sines_and_cosines, sinusoidal_frequencies
from attnlab.references.relative import relative_distance


def relative_sinusoids(
    q_len: int, k_len: int, d_model: int, *, device: torch.device | None = None
) -> Tensor:
    """A sinusoid of each query-minus-key distance, K - 1 down to 1 - Q: (Q + K - 1, D), float64.

    Sines first, then cosines, as in the released code. XLNet puts a row for distance K before
    them, which its shift drops again.

    Source: "Transformer-XL: Attentive Language Models beyond a Fixed-Length Context" (Dai et al.,
        2019), section 3.3
    Rows: B7"""
    check_count("q_len", q_len)
    check_count("k_len", k_len)
    d = torch.arange(k_len - 1, -q_len, -1, dtype=torch.float64, device=device)  # (Q + K - 1,)
    w = sinusoidal_frequencies(d_model, device=device)  #                          (D/2,)
    return sines_and_cosines(torch.outer(d, w), "concatenated")  #                 (Q + K - 1, D)


def rel_shift(x: Tensor, k_len: int) -> Tensor:
    """From one column per distance to one per key: (..., Q, Q + K - 1) -> (..., Q, K).

        out[i, j] = x[i, j + Q - 1 - i]

    Column c of x is distance K - 1 - c, as in `relative_sinusoids`, the last query standing at the
    last key; row i must move to the left by Q - 1 - i. One column too many and the same memory read
    with rows one shorter does that for all rows at once, and nothing is gathered.

    Source: "Transformer-XL: Attentive Language Models beyond a Fixed-Length Context" (Dai et al.,
        2019), appendix B
    Rows: B7"""
    if x.dim() < 2 or k_len < 1 or x.shape[-1] - x.shape[-2] != k_len - 1:
        raise ValueError(
            f"x has shape {tuple(x.shape)}: expected (..., Q, Q + K - 1) with K = k_len = {k_len}"
        )
    *outer, Q, R = x.shape  # R columns, one per distance
    padded = nn.functional.pad(x, (1, 0))  #                            (..., Q, R + 1)
    rows = padded.reshape(*outer, R + 1, Q)[..., 1:, :]  #              (..., R, Q)
    return rows.reshape(*outer, Q, R)[..., :k_len]  #                   (..., Q, K)


class TransformerXLAttention(nn.Module):
    """Multi-head self-attention with Transformer-XL's relative positions and memory.

    Shapes
        x       (B, S, D)         batch, sequence, `embed_dim`
        memory  (B, M, D)         this layer's inputs in the last segment, or None; no gradient
                                  goes there
        mask    (B, S, K)         boolean, query by key, K = M + S, or None
        output  (B, S, D)         after the output projection; no residual, no norm

    Mask: True means **may not be attended**. With `causal` (the default) keys after the query are
    forbidden besides. A query that may attend to nothing gets a context of zeros.

    Decoding: one token at a time, with all inputs so far as the memory, gives what the whole
    sequence gives at once.

    Source: "Transformer-XL: Attentive Language Models beyond a Fixed-Length Context" (Dai et al.,
        2019), section 3.3
    Rows: B7"""

    def __init__(self, embed_dim: int, num_heads: int, *, causal: bool = True) -> None:
        super().__init__()
        self.head_dim = _expect.head_width(embed_dim, num_heads)
        check_width("embed_dim", embed_dim)
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.causal = causal
        self.q_proj = nn.Linear(embed_dim, embed_dim, bias=False)
        self.k_proj = nn.Linear(embed_dim, embed_dim, bias=False)
        self.v_proj = nn.Linear(embed_dim, embed_dim, bias=False)
        self.r_proj = nn.Linear(embed_dim, embed_dim, bias=False)
        self.out_proj = nn.Linear(embed_dim, embed_dim, bias=False)
        self.u = nn.Parameter(torch.empty(num_heads, 1, self.head_dim))
        self.v = nn.Parameter(torch.empty(num_heads, 1, self.head_dim))
        nn.init.normal_(self.u, std=0.02)
        nn.init.normal_(self.v, std=0.02)

    def forward(
        self, x: Tensor, memory: Tensor | None = None, mask: Tensor | None = None
    ) -> Tensor:
        self._check(x, memory, mask)
        past = x if memory is None else torch.cat((memory.detach(), x), dim=1)  #   (B, K, D)
        Q, K = x.shape[1], past.shape[1]
        q = split_heads(self.q_proj(x), self.num_heads)  #                          (B, H, Q, hd)
        k = split_heads(self.k_proj(past), self.num_heads)  #                       (B, H, K, hd)
        v = split_heads(self.v_proj(past), self.num_heads)  #                       (B, H, K, hd)
        r = self._distances(Q, K)  #                                                (H, R, hd)
        content = (q + self.u) @ k.transpose(-2, -1)  #                             (B, H, Q, K)
        position = rel_shift((q + self.v) @ r.transpose(-2, -1), K)  #              (B, H, Q, K)
        scores = (content + position) / math.sqrt(self.head_dim)
        weights = masked_softmax(scores, self._forbidden(mask, scores))
        out: Tensor = self.out_proj(merge_heads(weights @ v))  #                    (B, Q, D)
        return out

    def position_bias(self, q_len: int, k_len: int) -> Tensor:
        """The part of the scores that looks at the distance alone, v . r / sqrt(hd): (H, Q, K)."""
        r = self._distances(q_len, k_len)  #                                        (H, R, hd)
        alone = (self.v @ r.transpose(-2, -1)).expand(-1, q_len, -1)  #             (H, Q, R)
        return rel_shift(alone, k_len) / math.sqrt(self.head_dim)  #                (H, Q, K)

    def _distances(self, q_len: int, k_len: int) -> Tensor:
        """r: one key per head and distance, (H, R, hd), R = Q + K - 1."""
        weight = self.r_proj.weight
        table = relative_sinusoids(q_len, k_len, self.embed_dim, device=weight.device)
        keys = self.r_proj(table.to(weight.dtype))  #                               (R, D)
        return split_heads(keys.unsqueeze(0), self.num_heads).squeeze(0)

    def _forbidden(self, mask: Tensor | None, scores: Tensor) -> Tensor:
        """Mask and future in one, (B or 1, 1, Q, K)."""
        distance = relative_distance(*scores.shape[-2:], device=scores.device)  #   (Q, K)
        future = ((distance > 0) & self.causal)[None, None]  #                      (1, 1, Q, K)
        return future if mask is None else future | mask.unsqueeze(1)

    def _check(self, x: Tensor, memory: Tensor | None, mask: Tensor | None) -> None:
        check_features("x", x, "B S D", D=self.embed_dim)
        B, Q, _ = x.shape
        K = Q
        if memory is not None:
            check_features("memory", memory, "B M D", B=B, D=self.embed_dim)
            K = memory.shape[1] + Q
        if mask is None:
            return
        if mask.dtype != torch.bool:
            raise WrongDtype(
                f"mask has dtype {mask.dtype}: expected torch.bool, True where a query may not "
                "attend (an additive mask of 0 and -inf becomes one by `mask == -inf`)"
            )
        if tuple(mask.shape) != (B, Q, K):
            raise ValueError(
                f"mask has shape {tuple(mask.shape)}: expected (B, S, M + S) = {(B, Q, K)}"
            )
