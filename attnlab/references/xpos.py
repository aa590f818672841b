"""xPos: rotary positions whose scores also fade with distance.

    q at m  ->  q turned by m w_i, times zeta_i^(m / scale_base)
    k at n  ->  k turned by n w_i, times zeta_i^(-n / scale_base)
    zeta_i = (2i/D + gamma) / (1 + gamma)                             i = 0 ... D/2 - 1

The scales meet in the score as zeta_i^((m - n) / scale_base): below 1 for keys before the query,
the smaller the faster the pair turns. For keys after it they exceed 1 and grow, so xPos is for
causal attention.
"""

import torch
from torch import Tensor, nn

from attnlab.references._arguments import (
    check_base,
    check_choice,
    check_count,
    check_features,
    check_width,
    resolve_positions,
)
from attnlab.references.rotary import LAYOUTS, rotary_frequencies, rotary_table, rotate_pairs


def xpos_decay(dim: int, gamma: float = 0.4, *, device: torch.device | None = None) -> Tensor:
    """zeta_i, each pair's decay of the score per `scale_base` positions: (dim/2,), float64.

    Source: "A Length-Extrapolatable Transformer" (Sun et al., 2022)
    Rows: B7"""
    check_width("dim", dim)
    if not gamma > 0:
        raise ValueError(f"gamma={gamma}: expected a number above 0 (the paper's is 0.4)")
    two_i = torch.arange(0, dim, 2, dtype=torch.float64, device=device)
    return (two_i / dim + gamma) / (1 + gamma)


def xpos_table(
    seq_len: int, dim: int, base: float = 10000.0, *, scale_base: float = 512.0, key: bool = False
) -> Tensor:
    """The vector (1, 0, 1, 0, ...) as query, or as key, of each position, (S, dim), float64.

    The dot product of query row m and key row n is sum_i zeta_i^((m - n)/scale_base) cos((m - n)
    w_i): what `xpos_table(S, dim) @ xpos_table(S, dim, key=True).T` holds on and below its diagonal
    fades with distance.

    Source: "A Length-Extrapolatable Transformer" (Sun et al., 2022)
    Rows: B7"""
    _check_scale_base(scale_base)
    power = torch.arange(seq_len, dtype=torch.float64) / scale_base  #        (S,)
    scale = xpos_decay(dim).pow((-power if key else power).unsqueeze(-1))  #  (S, dim/2)
    return rotary_table(seq_len, dim, base) * scale.repeat_interleave(2, dim=-1)  # (S, dim)


class XPos(nn.Module):
    """Rotates queries and keys by their positions and scales them inversely to each other.

    Angles and scales are computed in float64 at every call, whatever the type of the module; half
    types are turned in float32.

    `centre` is subtracted from the positions that the scales see. It cancels in every score, and
    keeps the scales near 1 where sequences are long: 2048 for sequences of 4096. It is fixed, so
    that keys in a cache keep fitting; x-transformers and rotary-embedding-torch take half of the
    present length instead, and there a cache must hold unrotated keys. Both pair neighbours
    (`layout` "interleaved"; see `rotate_pairs`).

    Shapes
        q             (B, H, S, hd)    batch, heads, sequence, `head_dim`
        k             (B, Hkv, S, hd)  as many heads as it likes; the same S positions
        position_ids  (B, S) or (S,)   whole numbers from 0; None for offset ... offset + S - 1
        output        q and k, shaped as they came

    Decoding with a cache: as in `RotaryEmbedding`.

    Source: "A Length-Extrapolatable Transformer" (Sun et al., 2022)
    Rows: B7"""

    def __init__(
        self,
        head_dim: int,
        *,
        base: float = 10000.0,
        scale_base: float = 512.0,
        gamma: float = 0.4,
        layout: str = "interleaved",
        centre: int = 0,
    ) -> None:
        super().__init__()
        xpos_decay(head_dim, gamma)  # refuses what has no decay
        check_base(base)
        _check_scale_base(scale_base)
        check_choice("layout", layout, LAYOUTS)
        check_count("centre", centre, least=0)
        self.head_dim = head_dim
        self.base = base
        self.scale_base = scale_base
        self.gamma = gamma
        self.layout = layout
        self.centre = centre

    def forward(
        self, q: Tensor, k: Tensor, position_ids: Tensor | None = None, *, offset: int = 0
    ) -> tuple[Tensor, Tensor]:
        check_features("q", q, "B H S hd", hd=self.head_dim)
        B, _, S, _ = q.shape
        check_features("k", k, "B Hkv S hd", B=B, S=S, hd=self.head_dim)
        p = resolve_positions(B, S, position_ids, offset, device=q.device)  #   (1 or B, S)
        cos, sin, scale = self._factors(p.unsqueeze(1))  #                     (1 or B, 1, S, hd/2)
        turned_q = self._rotate(q, cos * scale, sin * scale)
        return turned_q, self._rotate(k, cos / scale, sin / scale)

    def _factors(self, p: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(..., S) positions -> cos, sin and zeta^(p / scale_base), (..., S, hd/2), float64."""
        p = p.unsqueeze(-1)
        angles = p * rotary_frequencies(self.head_dim, self.base, device=p.device)
        zeta = xpos_decay(self.head_dim, self.gamma, device=p.device)  #       (hd/2,)
        scale = zeta.pow((p - self.centre) / self.scale_base)
        return angles.cos(), angles.sin(), scale

    def _rotate(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        exact = torch.promote_types(x.dtype, torch.float32)
        return rotate_pairs(x, cos.to(exact), sin.to(exact), self.layout).to(x.dtype)


def _check_scale_base(scale_base: float) -> None:
    if not scale_base > 0:
        raise ValueError(
            f"scale_base={scale_base}: expected a number of positions above 0 (the paper's is 512)"
        )
