"""Tokens as vectors: the lookup, the head that shares its matrix, and the sum with positions."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlab.references._arguments import WrongDtype, check_choice
from attnlab.references.extension import HybridPositionalEncoding
from attnlab.references.learned import LearnedPositionalEncoding
from attnlab.references.positional import SinusoidalPositionalEncoding


class TokenEmbedding(nn.Module):
    """A learned vector for each token, multiplied by sqrt(D) if `scale` is True.

        output = weight[ids] * sqrt(D)      the same as one_hot(ids) @ weight * sqrt(D)

    The scale multiplies every variance by D; it preserves none. At D = 512 a row drawn with the
    default std of 0.02 has norm 0.45, and 10.2 once scaled: comparable to the 16.0 = sqrt(D/2) of a
    sinusoidal position. With the std of 1 that `nn.Embedding` draws, a scaled row has norm 512.

    `padding_idx` is a token whose row is zeros, after each `reset_parameters` too, and gets no
    gradient from the lookup. It is zeros no longer once a position is added, and a head that shares
    the matrix does give its row a gradient.

    Shapes
        ids     (B, S)     tokens, int64 or int32, from 0 to `vocab_size` - 1
        output  (B, S, D)  of the weight's type

    Mask: none; attention still needs one, padding is only zeros here.

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.4; std as in GPT-2 and BERT
    Rows: B1"""

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        padding_idx: int | None = None,
        *,
        scale: bool = False,
        std: float = 0.02,
    ) -> None:
        super().__init__()
        _check_sizes(vocab_size, d_model, padding_idx, std)
        self.d_model = d_model
        self.padding_idx = padding_idx
        self.factor = math.sqrt(d_model) if scale else 1.0
        self.std = std
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model))  # (V, D)
        self.reset_parameters()

    @classmethod
    def from_pretrained(
        cls,
        weight: Tensor,
        padding_idx: int | None = None,
        *,
        freeze: bool = True,
        scale: bool = False,
    ) -> TokenEmbedding:
        """An embedding with a copy of these rows, (V, D): not trained unless `freeze` is False.

        The padding row is taken as it comes, as by `nn.Embedding.from_pretrained`; that one keeps
        the given tensor itself, so that training writes into it."""
        if weight.dim() != 2 or not weight.is_floating_point():
            raise ValueError(
                f"weight has shape {tuple(weight.shape)} and dtype {weight.dtype}: "
                "expected (V, D), floating-point"
            )
        V, D = weight.shape
        made = cls(V, D, padding_idx, scale=scale)
        made.weight = nn.Parameter(weight.detach().clone(), requires_grad=not freeze)
        return made

    @property
    def vocab_size(self) -> int:
        return self.weight.shape[0]

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draw every row from N(0, std^2) again, and set the padding row to zeros."""
        self.weight.normal_(std=self.std)
        if self.padding_idx is not None:
            self.weight[self.padding_idx] = 0

    @torch.no_grad()
    def resize(self, vocab_size: int) -> None:
        """Change the number of tokens: the first rows stay, new ones are drawn.

        The weight is a new `nn.Parameter` afterwards, so create a new optimizer. A `TiedHead`
        uses the new one."""
        _check_sizes(vocab_size, self.d_model, self.padding_idx, self.std)
        new = self.weight.new_empty(vocab_size, self.d_model).normal_(std=self.std)
        kept = min(vocab_size, self.vocab_size)
        new[:kept] = self.weight[:kept]
        self.weight = nn.Parameter(new, requires_grad=self.weight.requires_grad)

    def forward(self, ids: Tensor) -> Tensor:
        self._check(ids)
        try:
            rows = F.embedding(ids, self.weight, self.padding_idx)  # (B, S, D)
        except IndexError:
            raise ValueError(
                f"ids reach from {ids.min()} to {ids.max()}: "
                f"expected 0 to vocab_size - 1 = {self.vocab_size - 1}"
            ) from None
        return rows * self.factor

    def _check(self, ids: Tensor) -> None:
        if ids.dtype not in (torch.int64, torch.int32):
            raise WrongDtype(f"ids have dtype {ids.dtype}: expected int64 or int32")
        if ids.dim() != 2:
            raise ValueError(f"ids have shape {tuple(ids.shape)}: expected (B, S)")


class TiedHead(nn.Module):
    """The output head that shares the matrix of an embedding.

        logits = h @ weight^T      without bias, without the embedding's sqrt(D)

    The head holds the embedding itself and no weight of its own. So there is one `nn.Parameter`,
    and nothing loses the tie: not `.to()`, not loading a checkpoint (with `assign=True` neither),
    not `TokenEmbedding.resize`. The common way, `head.weight = embedding.weight`, makes one
    parameter with two owners: `assign=True` or a new weight for one of them unties them silently.

    Source and target share in the same way: one `TokenEmbedding` under two names, whose weight is
    one parameter that `state_dict` lists under both.

    T5 multiplies h by D^-0.5 first: `head(h * D ** -0.5)`. BERT adds a bias.

    Shapes
        h       (B, S, D)  hidden states
        output  (B, S, V)  logits

    Source: Press and Wolf 2017, "Using the Output Embedding to Improve Language Models"
    Rows: B2"""

    def __init__(self, embedding: TokenEmbedding) -> None:
        super().__init__()
        self.embedding = embedding

    @property
    def weight(self) -> Tensor:
        """The embedding's current weight, (V, D)."""
        return self.embedding.weight

    def forward(self, h: Tensor) -> Tensor:
        if h.dim() != 3 or h.shape[-1] != self.embedding.d_model:
            raise ValueError(
                f"h has shape {tuple(h.shape)}: expected (B, S, D) "
                f"with D = {self.embedding.d_model}"
            )
        return F.linear(h, self.weight)  # (B, S, D) @ (D, V) -> (B, S, V)


class _NoPositions(nn.Module):
    """Returns x unchanged, for schemes that act inside attention."""

    def forward(self, x: Tensor, position_ids: Tensor | None = None) -> Tensor:  # noqa: ARG002
        return x


# Each takes (d_model, max_seq_len); the module returns x + positions, without dropout.
POSITIONS: dict[str, Callable[[int, int], nn.Module]] = {
    "sinusoidal": SinusoidalPositionalEncoding,
    "learned": LearnedPositionalEncoding,
    "hybrid": HybridPositionalEncoding,
    "none": lambda *_: _NoPositions(),
}
INSIDE = ("rope", "alibi", "t5", "xl", "xpos")  # act on scores, queries or keys, never on the sum


class CombinedEmbedding(nn.Module):
    """The input of the first block: token plus position, then one dropout.

        output = dropout(E[ids] * sqrt(D) + PE[0 ... S - 1])

    A position module of this library returns x + PE. Adding its result to x once more,
    `tok + self.pos(tok)`, makes 2 * tok + PE and, where `pos` has a dropout, two of them.

    `position` names the encoding: "sinusoidal", "learned", "hybrid" (learned, and sinusoidal beyond
    `max_seq_len`), or "none" for schemes that act inside attention (RoPE, ALiBi, T5's bias), which
    add nothing here.

    Shapes
        ids           (B, S)     tokens
        position_ids  (B, S)     whole numbers below `max_seq_len`; None for 0 ... S - 1
        output        (B, S, D)

    Mask: none. Padding tokens get positions like all others.

    Source: Vaswani et al. 2017, "Attention Is All You Need", sections 3.4, 3.5 and 5.4
    Rows: B6"""

    def __init__(  # noqa: PLR0913 - one argument for each choice
        self,
        vocab_size: int,
        d_model: int,
        max_seq_len: int = 5000,
        *,
        position: str = "sinusoidal",
        dropout: float = 0.1,
        padding_idx: int | None = None,
        scale: bool = True,
    ) -> None:
        super().__init__()
        if not 0 <= dropout <= 1:
            raise ValueError(f"dropout={dropout}: expected a probability from 0 to 1")
        self.token = TokenEmbedding(vocab_size, d_model, padding_idx, scale=scale)
        self.position = _position(position)(d_model, max_seq_len)
        self.dropout = nn.Dropout(dropout)

    def forward(self, ids: Tensor, position_ids: Tensor | None = None) -> Tensor:
        tokens = self.token(ids)  #                            (B, S, D)
        placed = self.position(tokens, position_ids)  #        (B, S, D)  tokens + positions
        out: Tensor = self.dropout(placed)  #                  (B, S, D)
        return out


def _position(name: str) -> Callable[[int, int], nn.Module]:
    if name in INSIDE:
        raise ValueError(
            f"position={name!r}: it acts inside attention, not on embeddings; expected 'none' here"
        )
    check_choice("position", name, POSITIONS)
    return POSITIONS[name]


def _check_sizes(vocab_size: int, d_model: int, padding_idx: int | None, std: float) -> None:
    if vocab_size < 1 or d_model < 1:
        raise ValueError(f"vocab_size={vocab_size}, d_model={d_model}: expected positive numbers")
    if padding_idx is not None and not 0 <= padding_idx < vocab_size:
        raise ValueError(
            f"padding_idx={padding_idx}: expected None or a token from 0 to {vocab_size - 1}"
        )
    if not 0 <= std < math.inf:
        raise ValueError(f"std={std}: expected a finite number, 0 or more")
