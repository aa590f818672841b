"""Cross attention: one sequence asks, another answers."""

import math
from typing import NamedTuple

import torch.nn.functional as F
from torch import Tensor, nn

from attnlab.references import _expect
from attnlab.references.attention import masked_softmax
from attnlab.references.heads import merge_heads, split_heads


class Memory(NamedTuple):
    """Keys and values of a context, (B, H, Sk, hd) each: computed once, used at every step."""

    keys: Tensor
    values: Tensor


class CrossAttention(nn.Module):
    """Queries from x; keys and values from a context, which may have another length and width.

        softmax(q(x) k(context)^T / sqrt(hd)) v(context)

    The context does not change while a decoder generates: `remember` projects it once, and
    `attend` uses that at each step. `forward` is the two in one.

    Shapes
        x        (B, Sq, D)      `embed_dim`
        context  (B, Sk, Dc)     `context_dim`, D unless given
        mask     (B, H, Sq, Sk)  boolean, with 1 for B, H or Sq where shared; None for no mask
        output   (B, Sq, D)

    Mask: True means **may not be attended**. As a rule it is the context's padding; a causal one
    has no meaning between two sequences. A query that may attend to nothing gets zeros as context.

    Source: "Attention Is All You Need" (Vaswani et al., 2017), section 3.2.3
    Rows: A5"""

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        context_dim: int | None = None,
        *,
        bias: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.head_dim = _expect.head_width(embed_dim, num_heads)
        self.context_dim = embed_dim if context_dim is None else context_dim
        _expect.positive(context_dim=self.context_dim)
        _expect.probability(dropout=dropout)
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.q_proj = nn.Linear(embed_dim, embed_dim, bias=bias)
        self.k_proj = nn.Linear(self.context_dim, embed_dim, bias=bias)
        self.v_proj = nn.Linear(self.context_dim, embed_dim, bias=bias)
        self.out_proj = nn.Linear(embed_dim, embed_dim, bias=bias)

    def forward(self, x: Tensor, context: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.attend(x, self.remember(context), mask)

    def remember(self, context: Tensor) -> Memory:
        _expect.sequence("context", context, self.k_proj)
        keys = split_heads(self.k_proj(context), self.num_heads)  #         (B, H, Sk, hd)
        values = split_heads(self.v_proj(context), self.num_heads)  #       (B, H, Sk, hd)
        return Memory(keys, values)

    def attend(self, x: Tensor, memory: Memory, mask: Tensor | None = None) -> Tensor:
        _expect.sequence("x", x, self.q_proj)
        B, Sq, _ = x.shape
        if memory.keys.shape[0] != B:
            raise ValueError(
                f"x has {B} sequences, the context {memory.keys.shape[0]}: expected one each"
            )
        _expect.mask(mask, (B, self.num_heads, Sq, memory.keys.shape[2]), x.device)
        q = split_heads(self.q_proj(x), self.num_heads)  #                  (B, H, Sq, hd)
        scores = (q / math.sqrt(self.head_dim)) @ memory.keys.transpose(-2, -1)  # (B, H, Sq, Sk)
        weights = F.dropout(masked_softmax(scores, mask), self.dropout, self.training)
        context = weights @ memory.values  #                                (B, H, Sq, hd)
        out: Tensor = self.out_proj(merge_heads(context))  #                (B, Sq, D)
        return out
