"""Position tables for other lengths: interpolated, truncated, or continued by sinusoids."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlab.references._arguments import check_choice, check_count, check_features, check_positions
from attnlab.references.learned import LearnedPositionalEncoding
from attnlab.references.positional import sines_and_cosines, sinusoidal_frequencies


def interpolate_positions(
    table: Tensor, length: int, *, mode: str = "linear", align_corners: bool = True
) -> Tensor:
    """A table of S positions interpolated to `length` positions: (S, D) -> (length, D).

    New row q is read from the old table at position

        q * (S - 1) / (length - 1)            align_corners=True: first and last row stay
        (q + 1/2) * S / length - 1/2          align_corners=False: rows are cells, held at the rim

    "linear" weighs its two neighbours, "cubic" its four. Vision transformers use the second, in
    two dimensions: see `resample_grid_positions`. Half types are computed in float32.

    Stretched positions are closer together than any seen in training: fine-tuning on them is usual.

    Source: "An Image is Worth 16x16 Words" (Dosovitskiy et al., 2021), section 3.2
    Rows: B5"""
    check_features("table", table, "S D")
    check_count("the number of rows of table", table.shape[0])
    check_count("length", length)
    check_choice("mode", mode, ("linear", "cubic"))
    wide = table.to(torch.promote_types(table.dtype, torch.float32))
    # Channels first, and an axis of height 1 that no mode changes: "cubic" exists for images alone.
    image = wide.T[None, :, None]  #                                       (1, D, 1, S)
    kernel = "bilinear" if mode == "linear" else "bicubic"
    image = F.interpolate(image, (1, length), mode=kernel, align_corners=align_corners)
    return image[0, :, 0].T.to(table.dtype)  #                             (length, D)


def truncate_positions(table: Tensor, length: int, *, drop: str = "end") -> Tensor:
    """The first or last `length` rows of a table: (S, D) -> (length, D).

    `drop` "end" keeps the first rows: position p is still p, which is what a table for shorter
    sequences means. `drop` "start" keeps the last ones, so that row 0 is what position
    S - length was: for tables that count from the end.

    Source: none, everyday practice
    Rows: B5"""
    check_features("table", table, "S D")
    check_choice("drop", drop, ("end", "start"))
    S = table.shape[0]
    if not 0 <= length <= S:
        raise ValueError(f"length={length}: expected 0 ... {S}, the number of rows of table")
    return table[:length].clone() if drop == "end" else table[S - length :].clone()


class HybridPositionalEncoding(nn.Module):
    """Adds a learned row to each position within the table, and a sinusoidal one beyond it.

        row(p) = W[p]              p < `max_seq_len`
        row(p) = scale * PE[p]     otherwise, PE as in `sinusoidal_positional_encoding`

    Sequences may have any length; both kinds of row are added to x. A fresh learned row has norm
    0.02 sqrt(D), a sinusoidal one sqrt(D/2): `scale` brings them together where that matters.

    Shapes
        x             (B, S, D)  batch, sequence of any length, `d_model` (even)
        position_ids  (B, S)     whole numbers from 0; None for 0 ... S - 1 in every sequence
        output        (B, S, D)

    Source: none, everyday practice
    Rows: B5"""

    def __init__(
        self, d_model: int, max_seq_len: int, *, base: float = 10000.0, scale: float = 1.0
    ) -> None:
        super().__init__()
        sinusoidal_frequencies(d_model, base)  # refuses what has no frequencies
        self.learned = LearnedPositionalEncoding(d_model, max_seq_len)
        self.max_seq_len = max_seq_len
        self.d_model = d_model
        self.base = base
        self.scale = scale

    def forward(self, x: Tensor, position_ids: Tensor | None = None) -> Tensor:
        check_features("x", x, "B S D", D=self.d_model)
        B, S, _ = x.shape
        if position_ids is None:
            return x + self._rows(torch.arange(S, device=x.device))  #     (B, S, D) + (S, D)
        check_positions("position_ids", position_ids, (B, S), "B, S")
        return x + self._rows(position_ids)  #                             (B, S, D) + (B, S, D)

    def get_encoding(self, seq_len: int) -> Tensor:
        """The first `seq_len` rows, (S, D): a detached copy."""
        check_count("seq_len", seq_len, least=0)
        return self._rows(torch.arange(seq_len, device=self.learned.weight.device)).detach()

    def _rows(self, p: Tensor) -> Tensor:
        """(...,) positions -> (..., D)."""
        w = sinusoidal_frequencies(self.d_model, self.base, device=p.device)  #      (D/2,)
        waves = sines_and_cosines(p.unsqueeze(-1) * w)  #                            (..., D)
        table = self.learned.weight  #                                               (max, D)
        known = table[p.clamp(max=self.max_seq_len - 1)]  #                          (..., D)
        inside = (p < self.max_seq_len).unsqueeze(-1)  #                             (..., 1)
        return torch.where(inside, known, (self.scale * waves).to(table.dtype))
