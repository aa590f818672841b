"""The Transformer block: attention between positions, then a layer at each position.

    pre-norm     x = x + attention(norm(x))      x = x + feed_forward(norm(x))
    post-norm    x = norm(x + attention(x))      x = norm(x + feed_forward(x))

In pre-norm the residual stream runs from the first layer to the last untouched, so deep stacks
train without warm-up, and one more norm is needed after the last block. In post-norm, the order of
the first paper, each norm stands on that path.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from torch import Tensor, nn

from attnlab.references.cache import KVCache
from attnlab.references.cross import CrossAttention, Memory
from attnlab.references.feed_forward import FeedForward, SwiGLU
from attnlab.references.grouped import GroupedQueryAttention, Rotate
from attnlab.references.norms import LayerNorm, RMSNorm

Layer = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class BlockStyle:
    """The choices in which families of blocks differ; `dataclasses.replace` changes one.

    `dropout` is applied to the attention weights, inside the feed-forward layer and to both
    branches before they are added. `hidden_dim` None is 4 * D; `num_kv_heads` None is H.

    Source: GPT-2 (Radford et al., 2019), BERT (Devlin et al., 2019), Llama (Touvron et al., 2023)
    Rows: A6"""

    norm_first: bool = True
    norm: Callable[[int], nn.Module] = LayerNorm
    feed_forward: Callable[..., nn.Module] = FeedForward
    hidden_dim: int | None = None
    num_kv_heads: int | None = None
    bias: bool = True
    dropout: float = 0.0
    rotate: Rotate | None = None


GPT2 = BlockStyle(feed_forward=partial(FeedForward, tanh=True))
BERT = BlockStyle(norm_first=False, norm=partial(LayerNorm, eps=1e-12))
LLAMA = BlockStyle(norm=RMSNorm, feed_forward=SwiGLU, bias=False)


class _Block(nn.Module):
    """The layers that every block has, and how a branch is added in its style."""

    def __init__(self, embed_dim: int, num_heads: int, style: BlockStyle = GPT2) -> None:
        super().__init__()
        hidden_dim = 4 * embed_dim if style.hidden_dim is None else style.hidden_dim
        self.norm_first = style.norm_first
        self.attention = GroupedQueryAttention(
            embed_dim,
            num_heads,
            style.num_kv_heads,
            bias=style.bias,
            dropout=style.dropout,
            rotate=style.rotate,
        )
        self.feed_forward = style.feed_forward(
            embed_dim, hidden_dim, bias=style.bias, dropout=style.dropout
        )
        self.attention_norm = style.norm(embed_dim)
        self.feed_forward_norm = style.norm(embed_dim)
        self.dropout = nn.Dropout(style.dropout)

    def _branch(self, x: Tensor, norm: nn.Module, layer: Layer) -> Tensor:
        return add_branch(x, norm, layer, self.dropout, norm_first=self.norm_first)


class TransformerBlock(_Block):
    """Self-attention and a feed-forward layer, each with a norm, dropout and a residual.

    The style says how: `TransformerBlock(D, H, LLAMA)`. It is an encoder's block without a mask
    and a decoder's with `causal_mask`.

    Shapes
        x          (B, S, D)       batch, new positions, `embed_dim`
        mask       (B, H, S, Sk)   boolean, with 1 for B, H or S where shared; None for no mask
        positions  (S,) or (B, S)  for the style's `rotate`; None counts on from the cache
        output     (B, S, D)       Sk = cache.length + S with a cache, S without one

    Mask: True means **may not be attended**.
    Source: "Attention Is All You Need" (Vaswani et al., 2017), section 3.1;
        "On Layer Normalization in the Transformer Architecture" (Xiong et al., 2020)
    Rows: A6"""

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        *,
        positions: Tensor | None = None,
        cache: KVCache | None = None,
    ) -> Tensor:
        def attend(t: Tensor) -> Tensor:
            out: Tensor = self.attention(t, mask, positions=positions, cache=cache)
            return out

        x = self._branch(x, self.attention_norm, attend)  #               (B, S, D)
        return self._branch(x, self.feed_forward_norm, self.feed_forward)


class CrossBlock(_Block):
    """A decoder block with cross-attention to an encoder, between self-attention and feed-forward.

    `forward` takes the encoder's output; `step` takes the keys and values that `remember` projects
    from it once.

    Shapes
        x             (B, S, D)       batch, new positions, `embed_dim`
        context       (B, Sk, D)      the encoder's output
        mask          (B, H, S, Sx)   among the positions of x, boolean, 1 where shared; or None
        context_mask  (B, H, S, Sk)   of x over the context, likewise
        output        (B, S, D)       Sx = cache.length + S with a cache, S without one

    Mask: True means **may not be attended**, in both.
    Source: "Attention Is All You Need" (Vaswani et al., 2017), section 3.1
    Rows: A5, A6"""

    def __init__(self, embed_dim: int, num_heads: int, style: BlockStyle = GPT2) -> None:
        super().__init__(embed_dim, num_heads, style)
        self.cross = CrossAttention(embed_dim, num_heads, bias=style.bias, dropout=style.dropout)
        self.cross_norm = style.norm(embed_dim)

    def forward(
        self,
        x: Tensor,
        context: Tensor,
        mask: Tensor | None = None,
        context_mask: Tensor | None = None,
    ) -> Tensor:
        return self.step(x, self.remember(context), mask, context_mask)

    def remember(self, context: Tensor) -> Memory:
        return self.cross.remember(context)

    def step(
        self,
        x: Tensor,
        memory: Memory,
        mask: Tensor | None = None,
        context_mask: Tensor | None = None,
        *,
        cache: KVCache | None = None,
    ) -> Tensor:
        def attend(t: Tensor) -> Tensor:
            out: Tensor = self.attention(t, mask, cache=cache)
            return out

        def attend_context(t: Tensor) -> Tensor:
            return self.cross.attend(t, memory, context_mask)

        x = self._branch(x, self.attention_norm, attend)  #               (B, S, D)
        x = self._branch(x, self.cross_norm, attend_context)
        return self._branch(x, self.feed_forward_norm, self.feed_forward)


def add_branch(
    x: Tensor, norm: nn.Module, layer: Layer, dropout: nn.Module, *, norm_first: bool
) -> Tensor:
    """Add a layer's output to its input ("sub-layer connection"), with the norm before or after.

    Shapes: x (B, S, D); output the same.
    Source: "On Layer Normalization in the Transformer Architecture" (Xiong et al., 2020)
    Rows: A6"""
    if norm_first:
        out: Tensor = x + dropout(layer(norm(x)))
    else:
        out = norm(x + dropout(layer(x)))
    return out
