"""Positions on several levels: which paragraph, which sentence of it, which word of that."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from attnlab.references._arguments import check_count, check_features, check_positions


def level_positions(
    seq_len: int, level_sizes: Sequence[int], *, device: torch.device | None = None
) -> Tensor:
    """Where each of S positions stands on each level of a regular hierarchy, (S, L), int64.

    `level_sizes` goes from the outermost level to the innermost: (3, 4, 5) is 3 paragraphs of 4
    sentences of 5 words, and position 27 is word 2 of sentence 1 of paragraph 1: its digits as a
    number whose places count to 5, 4 and 3.

    Source: none, everyday practice
    Rows: B6"""
    capacity = _capacity(level_sizes)
    if not 0 <= seq_len <= capacity:
        raise ValueError(
            f"seq_len={seq_len}: expected 0 ... {capacity}, the product of "
            f"level_sizes = {tuple(level_sizes)}"
        )
    p = torch.arange(seq_len, device=device)  #                        (S,)
    digits = []
    for size in reversed(level_sizes):  # innermost first
        digits.append(p % size)
        p = p // size
    return torch.stack(digits[::-1], dim=-1)  #                        (S, L)


class HierarchicalPositionalEncoding(nn.Module):
    """Adds a trained row per level: y[b, s] = x[b, s] + sum over levels l of W_l[position on l].

    sum(`level_sizes`) rows tell prod(`level_sizes`) positions apart, and what is learnt about the
    second word serves in every sentence.

    Shapes
        x          (B, S, D)  batch, sequence, `d_model`
        level_ids  (B, S, L)  position on each level, outermost first; None for a regular
                              hierarchy (see `level_positions`)
        output     (B, S, D)

    Source: none, everyday practice; BERT sums rows for segment and position in this way (Devlin et
        al. 2019, section 3.2)
    Rows: B6"""

    def __init__(self, level_sizes: Sequence[int], d_model: int, *, std: float = 0.02) -> None:
        super().__init__()
        self.max_seq_len = _capacity(level_sizes)
        check_count("d_model", d_model)
        self.level_sizes = tuple(level_sizes)
        self.d_model = d_model
        tables = [nn.init.normal_(torch.empty(size, d_model), std=std) for size in level_sizes]
        self.weights = nn.ParameterList(tables)  #                   (size, D) per level

    def forward(self, x: Tensor, level_ids: Tensor | None = None) -> Tensor:
        check_features("x", x, "B S D", D=self.d_model)
        B, S, _ = x.shape
        if level_ids is None:
            return x + self._rows(level_positions(S, self.level_sizes, device=x.device))
        L = len(self.level_sizes)
        check_positions("level_ids", level_ids, (B, S, L), "B, S, L")
        for level, size in enumerate(self.level_sizes):
            ids = level_ids[..., level]
            check_positions(f"level_ids[..., {level}]", ids, (B, S), "B, S", below=size)
        return x + self._rows(level_ids)  #                          (B, S, D)

    def get_encoding(self, seq_len: int) -> Tensor:
        """The rows of a regular hierarchy, (S, D): a copy, cut off from training."""
        device = self.weights[0].device
        return self._rows(level_positions(seq_len, self.level_sizes, device=device)).detach()

    def _rows(self, ids: Tensor) -> Tensor:
        """(..., L) -> (..., D)."""
        rows = [weight[ids[..., level]] for level, weight in enumerate(self.weights)]
        return torch.stack(rows).sum(dim=0)  #                       L times (..., D) -> (..., D)


def _capacity(level_sizes: Sequence[int]) -> int:
    if not level_sizes or min(level_sizes) < 1:
        raise ValueError(
            f"level_sizes={tuple(level_sizes)}: expected one size or more, each 1 or more"
        )
    return math.prod(level_sizes)
