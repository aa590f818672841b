"""Properties of a position table: rotation by shifts, dot products by distance, statistics.

Every function takes a table `pe` of shape (S, D), one row for each position, and works in float64.
A float32 table is off by its own rounding, about 1e-7; build it in float64 to see exact laws.

The columns of a sinusoidal table stand in one of two layouts, and a checkpoint means one of them:

    interleaved     sin w0, cos w0, sin w1, cos w1, ...          the paper's
    concatenated    sin w0, sin w1, ..., cos w0, cos w1, ...     tensor2tensor's, Transformer-XL's
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from attnlab.records.position import Frequency
from attnlab.references._arguments import check_choice
from attnlab.references.positional import LAYOUTS, sinusoidal_frequencies


class Rotation(NamedTuple):
    """M_k, and the largest distance between `M_k @ pe[p]` and `pe[p + k]`."""

    matrix: Tensor
    error: float


class Distances(NamedTuple):
    """Mean and spread over all pairs of positions that are k apart, for each k: (S,) each."""

    mean: Tensor
    spread: Tensor  # largest minus smallest: 0 where the distance alone decides


class Statistics(NamedTuple):
    """Statistics of a table. Variances are biased (correction=0)."""

    norm_min: float
    norm_max: float
    norm_expected: float  # sqrt(D/2), that of every sinusoidal row
    mean: float
    variance: float
    min: float
    max: float
    finite: bool
    norms: Tensor  # (S,), of each position
    column_variances: Tensor  # (D,), of each column over the positions


class Uniqueness(NamedTuple):
    """The number of distinct rows, and the two nearest rows with their distance."""

    distinct: int
    nearest: float
    pair: tuple[int, int]


def relative_position_matrix(pe: Tensor, k: int, layout: str = "interleaved") -> Rotation:
    """The rotation M_k that takes every row of a table to the row k positions later.

        (sin (p+k)w)   ( cos kw  sin kw) (sin pw)
        (cos (p+k)w) = (-sin kw  cos kw) (cos pw)      one such block for each pair, 0 elsewhere

    The angle of each block is not taken from the formula but read from the table: it is the one
    that fits best over all p. A table that is no sinusoid gets an answer too, with a large error.

    Shapes
        pe      (S, D)  D even
        matrix  (D, D)  block-diagonal in the interleaved layout; float64

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.5
    Rows: B9"""
    pe = _table(pe, pairs=True)
    S, D = pe.shape
    if not 0 <= k < S:
        raise ValueError(f"k={k}: expected an offset from 0 to S - 1 = {S - 1}")
    sin, cos = _columns(D, layout)  #                                          (D/2,) each
    z = torch.complex(pe[:, cos], pe[:, sin])  #                               (S, D/2)
    angle = (z[k:] * z[: S - k].conj()).sum(dim=0).angle()  #                  (D/2,)  k * w_i
    matrix = torch.zeros(D, D, dtype=pe.dtype)  #                              (D, D)
    matrix[sin, sin], matrix[sin, cos] = angle.cos(), angle.sin()
    matrix[cos, sin], matrix[cos, cos] = -angle.sin(), angle.cos()
    error = (pe[: S - k] @ matrix.T - pe[k:]).abs().max()
    return Rotation(matrix, error.item())


def dot_product_distance(
    pe: Tensor, query_weight: Tensor | None = None, key_weight: Tensor | None = None
) -> Tensor:
    """The dot product of every two rows: what positions alone contribute to attention scores.

        G[i, j] = pe[i] . pe[j] = sum over pairs of cos((i - j) w)

    So for a sinusoid G is symmetric, Toeplitz (it depends on the distance i - j alone), and D/2 on
    its diagonal. Attention sees `(W_q pe[i]) . (W_k pe[j])` instead, which in general is none of
    these: with the two weights given, that is what is returned.

    Shapes
        pe            (S, D)
        query_weight  (d, D)  as of an `nn.Linear`; None = the identity
        key_weight    (d, D)
        output        (S, S)  query by key, float64

    Source: Yan et al. 2019, "TENER: Adapting Transformer Encoder for Named Entity Recognition"
    Rows: B9"""
    pe = _table(pe)
    query = pe if query_weight is None else pe @ _weight("query_weight", query_weight, pe).T
    key = pe if key_weight is None else pe @ _weight("key_weight", key_weight, pe).T
    if query.shape != key.shape:
        raise ValueError(
            f"queries are {query.shape[1]} wide and keys {key.shape[1]}: expected the same width "
            "of query_weight and key_weight"
        )
    return query @ key.T


def by_distance(matrix: Tensor) -> Distances:
    """The entries of a square matrix, gathered by their distance j - i = 0 ... S - 1.

    A spread of 0 everywhere is what Toeplitz means, for a symmetric matrix.

    Shapes
        matrix  (S, S)
        mean, spread  (S,)

    Rows: B9"""
    if matrix.dim() != 2 or matrix.shape[0] != matrix.shape[1] or not len(matrix):
        raise ValueError(f"matrix has shape {tuple(matrix.shape)}: expected a square, (S, S)")
    diagonals = [matrix.double().diagonal(k) for k in range(len(matrix))]
    mean = torch.stack([d.mean() for d in diagonals])  #                       (S,)
    spread = torch.stack([d.max() - d.min() for d in diagonals])  #            (S,)
    return Distances(mean, spread)


def encoding_statistics(pe: Tensor) -> Statistics:
    """Norms of the rows, variances of the columns, mean, variance and bounds of a table.

    Of a sinusoid: every norm is sqrt(D/2), every entry within -1 ... 1, mean^2 + variance = 1/2.

    Shapes
        pe  (S, D)

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.5
    Rows: B9"""
    pe = _table(pe)
    norms = pe.norm(dim=1)  #                                                  (S,)
    return Statistics(
        norm_min=norms.min().item(),
        norm_max=norms.max().item(),
        norm_expected=math.sqrt(pe.shape[1] / 2),
        mean=pe.mean().item(),
        variance=pe.var(correction=0).item(),
        min=pe.min().item(),
        max=pe.max().item(),
        finite=bool(pe.isfinite().all()),
        norms=norms,
        column_variances=pe.var(dim=0, correction=0),
    )


def uniqueness(pe: Tensor) -> Uniqueness:
    """How well positions can be told apart: the number of distinct rows, and the nearest two.

    Shapes
        pe  (S, D)  S at least 2

    Rows: B9"""
    pe = _table(pe)
    if len(pe) < 2:
        raise ValueError("pe has one row: expected two or more to tell apart")
    best = Uniqueness(len(torch.unique(pe, dim=0)), math.inf, (0, 1))
    for i in range(len(pe) - 1):
        gap, j = (pe[i + 1 :] - pe[i]).norm(dim=1).min(dim=0)  # (S - 1 - i,): not by dot
        if gap < best.nearest:  #                                products, which would cancel
            best = best._replace(nearest=gap.item(), pair=(i, i + 1 + int(j)))
    return best


def frequency_table(
    d_model: int, base: float = 10000.0, layout: str = "interleaved"
) -> tuple[Frequency, ...]:
    """The waves of a sinusoidal table (or of RoPE on a head of that width), fastest first.

        w_i = base^(-2i/D)      wavelength = 2 pi / w_i = 2 pi base^(2i/D)      i = 0 ... D/2 - 1

    The last frequency is base^(-(D-2)/D), not 1/base: 1.334e-4 at D = 64 and base 10000.

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.5
    Rows: B9"""
    frequencies = sinusoidal_frequencies(d_model, base).tolist()
    sin, cos = (columns.tolist() for columns in _columns(d_model, layout))
    return tuple(
        Frequency(pair=i, columns=(sin[i], cos[i]), frequency=w, wavelength=2 * math.pi / w)
        for i, w in enumerate(frequencies)
    )


def _columns(D: int, layout: str) -> tuple[Tensor, Tensor]:
    """Where the sines and the cosines stand, (D/2,) each."""
    check_choice("layout", layout, LAYOUTS)
    if layout == "interleaved":
        return torch.arange(0, D, 2), torch.arange(1, D, 2)
    return torch.arange(0, D // 2), torch.arange(D // 2, D)


def _table(pe: Tensor, *, pairs: bool = False) -> Tensor:
    if pe.dim() != 2 or not pe.numel() or (pairs and pe.shape[1] % 2):
        width = "D even" if pairs else "D at least 1"
        raise ValueError(
            f"pe has shape {tuple(pe.shape)}: expected (S, D), one row for each position, {width}"
        )
    return pe.detach().double()


def _weight(name: str, weight: Tensor, pe: Tensor) -> Tensor:
    if weight.dim() != 2 or weight.shape[1] != pe.shape[1]:
        raise ValueError(
            f"{name} has shape {tuple(weight.shape)}: expected (d, D) with D = {pe.shape[1]}"
        )
    return weight.detach().double()
