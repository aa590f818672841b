"""Positions as in "Attention Is All You Need" (Vaswani et al., 2017), section 3.5.

    PE[p, 2i]   = sin(p * w_i)
    PE[p, 2i+1] = cos(p * w_i)        w_i = base^(-2i/D),  i = 0 ... D/2 - 1

Pair i rotates by w_i radians from one position to the next: i = 0 by a whole radian (the fast end),
the last by base^(-(D-2)/D) (the slow end, a little faster than 1/base).
"""

import math

import torch
from torch import Tensor, nn

from attnlab.references._arguments import (
    check_base,
    check_choice,
    check_features,
    check_positions,
    check_width,
    has_values,
)

LAYOUTS = ("interleaved", "concatenated")


def sinusoidal_frequencies(
    d_model: int, base: float = 10000.0, *, device: torch.device | None = None
) -> Tensor:
    """Radians per position of each pair, fastest first: w_i = base^(-2i/D), (D/2,), float64.

    The wavelength of pair i is 2 pi / w_i positions: from 2 pi to a little less than 2 pi * base.

    Source: "Attention Is All You Need" (Vaswani et al., 2017), section 3.5
    Rows: B3, B9"""
    check_width("d_model", d_model)
    check_base(base)
    two_i = torch.arange(0, d_model, 2, dtype=torch.float64, device=device)  #     (D/2,)
    return torch.exp(-math.log(base) * two_i / d_model)  #                         (D/2,)


def sines_and_cosines(angles: Tensor, layout: str = "interleaved") -> Tensor:
    """(..., D/2) angles -> (..., D): sin and cos alternating, or all sines and then all cosines.

    Source: "Attention Is All You Need" (Vaswani et al., 2017), section 3.5
    Rows: B3"""
    check_choice("layout", layout, LAYOUTS)
    pair = angles.sin(), angles.cos()
    if layout == "interleaved":
        return torch.stack(pair, dim=-1).flatten(-2)  # (..., D/2, 2) -> (..., D)
    return torch.cat(pair, dim=-1)


def sinusoidal_positional_encoding(
    seq_len: int,
    d_model: int,
    base: float = 10000.0,
    *,
    layout: str = "interleaved",
    odd: str = "error",
    dtype: torch.dtype | None = None,
) -> Tensor:
    """The table of sines and cosines, one row per position, (S, D) = (`seq_len`, `d_model`).

    `base` sets the slowest frequency; it has nothing to do with how many positions there are.
    `dtype` is that of the result (torch's default type if None); angles are float64 in any case,
    because a float32 angle of p radians is off by about p * 1e-7, and taking it modulo 2 pi in
    float32 only adds an error.

    `layout` "interleaved" is the paper's, sin and cos alternating; "concatenated" holds the same
    columns, all sines first: column 2i + r of the one is column r * D/2 + i of the other.
    tensor2tensor is concatenated too, but spreads its frequencies over D/2 - 1 steps, so that
    the last is exactly 1/base.

    `odd` "pad" allows an odd D: the table of D - 1 columns and one of zeros, so that every pair
    stays whole (positional-encodings cuts instead: `table(S, D + 1)[:, :D]`).

    Source: "Attention Is All You Need" (Vaswani et al., 2017), section 3.5
    Rows: B3, B8, B9"""
    check_choice("odd", odd, ("error", "pad"))
    if seq_len < 0:
        raise ValueError(f"seq_len={seq_len}: expected a number of positions, 0 or more")
    spare = odd == "pad" and d_model > 2 and d_model % 2  # one column is left over
    w = sinusoidal_frequencies(d_model - 1 if spare else d_model, base)  #     (D/2,)
    p = torch.arange(seq_len, dtype=torch.float64)  #                           (S,)
    table = sines_and_cosines(torch.outer(p, w), layout)  #                     (S, D)
    if spare:
        table = nn.functional.pad(table, (0, 1))  #                             (S, D - 1) -> (S, D)
    return table.to(dtype or torch.get_default_dtype())


class SinusoidalPositionalEncoding(nn.Module):
    """Adds the sinusoidal table to embeddings, or returns its rows.

    Shapes
        x             (B, S, D)  batch, sequence (at most `max_seq_len`), `d_model`
        position_ids  (B, S)     whole numbers; None for 0 ... S - 1 in every sequence
        output        (B, S, D)  x + table, the same table for every sequence of the batch;
                      (1, S, D)  with `output` "table": the rows alone, ((B, S, D) with ids)

    `layout` and `odd` are those of `sinusoidal_positional_encoding`. `beyond` "extend" computes a
    longer table when a sequence asks for one, with room to spare, and keeps that in place of the
    old one; no length is cached beside another, and the table stays where the module is.

    Source: "Attention Is All You Need" (Vaswani et al., 2017), section 3.5
    Rows: B3, B8"""

    pe: Tensor

    def __init__(  # noqa: PLR0913  one argument per variant
        self,
        d_model: int,
        max_seq_len: int = 5000,
        *,
        base: float = 10000.0,
        layout: str = "interleaved",
        odd: str = "error",
        output: str = "sum",
        beyond: str = "error",
    ) -> None:
        super().__init__()
        check_choice("output", output, ("sum", "table"))
        check_choice("beyond", beyond, ("error", "extend"))
        self.d_model = d_model
        self.max_seq_len = max_seq_len
        self.base = base
        self.layout = layout
        self.odd = odd
        self.output = output
        self.beyond = beyond
        # A buffer: it follows .to() and is not trained. Not persistent: the arguments give it
        # back, and saved it would tie every checkpoint to one maximum length.
        self.register_buffer("pe", self._table(max_seq_len), persistent=False)  # (1, max, D)

    def forward(self, x: Tensor, position_ids: Tensor | None = None) -> Tensor:
        check_features("x", x, "B S D", D=self.d_model)
        B, S, _ = x.shape
        if position_ids is None:
            S = self._covered_length(S)
            rows = self.pe[:, :S]  #                             (1, S, D)
        else:
            self._check_ids(position_ids, (B, S))
            rows = self.pe[0][position_ids]  #                   (B, S, D)
        return rows if self.output == "table" else x + rows  #   (B, S, D)

    def get_encoding(self, seq_len: int) -> Tensor:
        """The first `seq_len` rows, (S, D): a copy, so writing to it leaves the table unchanged."""
        seq_len = self._covered_length(seq_len)
        return self.pe[0, :seq_len].clone()

    def _covered_length(self, seq_len: int) -> int:
        """`seq_len`, after checking or extending the table to that many rows."""
        if self.beyond == "extend" and seq_len > self.max_seq_len:
            self.max_seq_len = 2 * seq_len
            self.pe = self._table(self.max_seq_len).to(self.pe)
        if 0 <= seq_len <= self.max_seq_len:
            return seq_len
        raise ValueError(
            f"the sequence length is {seq_len}: expected at most max_seq_len = {self.max_seq_len}"
        )

    def _check_ids(self, ids: Tensor, shape: tuple[int, int]) -> None:
        if self.beyond == "error":
            check_positions("position_ids", ids, shape, "B, S", below=self.max_seq_len)
            return
        check_positions("position_ids", ids, shape, "B, S")
        if has_values(ids):
            self._covered_length(int(ids.max()) + 1)

    def _table(self, seq_len: int) -> Tensor:
        table = sinusoidal_positional_encoding(
            seq_len, self.d_model, self.base, layout=self.layout, odd=self.odd
        )
        return table.unsqueeze(0)  # (1, S, D)
