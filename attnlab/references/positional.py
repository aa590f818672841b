"""Positions as in "Attention Is All You Need" (Vaswani et al., 2017), section 3.5.

    PE[p, 2i]   = sin(p * w_i)
    PE[p, 2i+1] = cos(p * w_i)        w_i = base^(-2i/D),  i = 0 ... D/2 - 1

Pair i turns by w_i radians from one position to the next: i = 0 by a whole radian (the fast end),
the last by base^(-(D-2)/D) (the slow end, a little faster than 1/base).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


def sinusoidal_positional_encoding(
    seq_len: int, d_model: int, base: float = 10000.0, *, dtype: torch.dtype | None = None
) -> Tensor:
    """The table of the formula above, shape (S, D) = (`seq_len`, `d_model`), sin and cos in turn.

    `base` sets the slowest frequency; it has nothing to do with how many positions there are.
    `dtype` is that of the result (torch's default type if None); angles are float64 in any case,
    because a float32 angle of p radians is off by about p * 1e-7.

    Raises `ValueError` for an odd or non-positive `d_model` (its last column would be half a pair),
    a negative `seq_len`, or a `base` that is not above 1.
    """
    _check(seq_len, d_model, base)
    p = torch.arange(seq_len, dtype=torch.float64)  #                         (S,)
    two_i = torch.arange(0, d_model, 2, dtype=torch.float64)  #               (D/2,)
    w = torch.exp(-math.log(base) * two_i / d_model)  #                       (D/2,)  base^(-2i/D)
    angles = torch.outer(p, w)  #                                             (S, D/2)
    table = torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)  #   (S, D)
    return table.to(dtype or torch.get_default_dtype())


class SinusoidalPositionalEncoding(nn.Module):
    """Adds the sinusoidal table to embeddings.

    Shapes
        x       (B, S, D)  batch, sequence (at most `max_seq_len`), `d_model`
        output  (B, S, D)  x + table, the same table for every sequence of the batch

    Raises `ValueError` for an odd `d_model`, for x of another rank or width, and for sequences
    longer than `max_seq_len`.
    """

    pe: Tensor

    def __init__(self, d_model: int, max_seq_len: int = 5000) -> None:
        super().__init__()
        self.d_model = d_model
        self.max_seq_len = max_seq_len
        table = sinusoidal_positional_encoding(max_seq_len, d_model)
        # A buffer: it follows .to() and is not trained. Not persistent: the two arguments give it
        # back, and saved it would tie every checkpoint to one maximum length.
        self.register_buffer("pe", table.unsqueeze(0), persistent=False)  # (1, max_seq_len, D)

    def forward(self, x: Tensor) -> Tensor:
        if x.dim() != 3 or x.shape[-1] != self.d_model:
            raise ValueError(
                f"x has shape {tuple(x.shape)}: expected (B, S, D) with D = {self.d_model}"
            )
        S = self._within(x.shape[1])
        return x + self.pe[:, :S]  # (B, S, D) + (1, S, D)

    def get_encoding(self, seq_len: int) -> Tensor:
        """The first `seq_len` rows, (S, D): a copy, so writing to it leaves the table alone."""
        return self.pe[0, : self._within(seq_len)].clone()

    def _within(self, seq_len: int) -> int:
        if 0 <= seq_len <= self.max_seq_len:
            return seq_len
        raise ValueError(
            f"the sequence length is {seq_len}: expected at most max_seq_len = {self.max_seq_len}"
        )


def _check(seq_len: int, d_model: int, base: float) -> None:
    if d_model < 2 or d_model % 2:
        raise ValueError(f"d_model={d_model}: expected a positive even number of columns")
    if seq_len < 0:
        raise ValueError(f"seq_len={seq_len}: expected a number of positions, 0 or more")
    if not 1 < base < math.inf:
        raise ValueError(f"base={base}: expected a finite number above 1 (the paper's is 10000)")
