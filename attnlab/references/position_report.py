"""The report on one kind of positions: pictures, frequencies, the effect of distance, statistics.

Trusted code: everything is computed from the references; no user's module is run.
"""

import math
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from attnlab.records.position import (
    OFFSETS,
    USES,
    Curve,
    Kind,
    Picture,
    PositionJob,
    PositionReport,
    RotationTest,
    Statistic,
)
from attnlab.references.alibi import alibi_bias, alibi_slopes
from attnlab.references.analysis import (
    Distances,
    by_distance,
    dot_product_distance,
    encoding_statistics,
    frequency_table,
    relative_position_matrix,
    uniqueness,
)
from attnlab.references.grid import sinusoidal_grid_encoding
from attnlab.references.learned import LearnedPositionalEncoding
from attnlab.references.positional import sinusoidal_positional_encoding
from attnlab.references.relative import relative_distance, t5_buckets
from attnlab.references.rotary import rotary_table
from attnlab.references.transformer_xl import relative_sinusoids
from attnlab.references.xpos import xpos_table

EXACT = 1e-10  # the largest error of an exact rotation
POINTS = 512  # the most points of a curve
FEW = 1000  # rows that the slower statistics use
DOT = "dot product of two rows, by distance"


def build_position_report(job: PositionJob) -> PositionReport:
    report = KINDS[job.kind](job)
    return replace(report, notes=(*report.notes, *_unused_sizes(job)))


# ---------------------------------------------------------------- the kinds


def _sinusoidal(job: PositionJob) -> PositionReport:
    table = sinusoidal_positional_encoding(job.length, job.dim, job.base, dtype=torch.float64)
    gram = by_distance(dot_product_distance(table))
    return PositionReport(
        formula=("PE[p, 2i] = sin(p w_i)", "PE[p, 2i+1] = cos(p w_i)", "w_i = base^(-2i/dim)"),
        pictures=(_picture("the table", "position", "column", table, job),),
        frequencies=frequency_table(job.dim, job.base),
        curve=_curve(DOT, gram),
        statistics=(*_statistics(table), *_spread_after_weights(table)),
        rotation=_rotation(table),
    )


def _learned(job: PositionJob) -> PositionReport:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        table = LearnedPositionalEncoding(job.dim, job.length).get_encoding(job.length).double()
    odd = job.dim % 2 == 1
    return PositionReport(
        formula=("PE[p] = W[p]", "W is trained, and initialised from N(0, 0.02^2)"),
        pictures=(_picture("the table as initialised", "position", "column", table, job),),
        curve=_curve(DOT, by_distance(dot_product_distance(table))),
        statistics=_statistics(table),
        rotation=() if odd else _rotation(table),
        notes=("before training, rows are independent: no frequencies, no effect of distance",),
    )


def _rope(job: PositionJob) -> PositionReport:
    table = rotary_table(job.length, job.width, job.base)
    return PositionReport(
        formula=(
            "pair i of a query or key at p is rotated by p w_i",
            f"w_i = base^(-2i/{job.width}) in heads of dim / heads = {job.width}",
        ),
        pictures=(_picture("(1, 0, 1, 0, ...) rotated", "position", "column", table, job),),
        frequencies=frequency_table(job.width, job.base),
        curve=_curve("score of that vector with itself, by distance", by_distance(table @ table.T)),
        statistics=(*_statistics(table), _spread_of_scores(table, table)),
        rotation=_rotation(table),
    )


def _xpos(job: PositionJob) -> PositionReport:
    queries = xpos_table(job.length, job.width, job.base)
    keys = xpos_table(job.length, job.width, job.base, key=True)
    scores = by_distance(keys @ queries.T)  # transposed: of keys that are not after the query
    return PositionReport(
        formula=(
            "as RoPE; queries times zeta_i^(p/512), keys times zeta_i^(-p/512)",
            "zeta_i = (2i/width + 0.4) / 1.4",
        ),
        pictures=(_picture("(1, 0, 1, 0, ...) as a query", "position", "column", queries, job),),
        frequencies=frequency_table(job.width, job.base),
        curve=_curve("score of that vector with itself, by distance", scores),
        statistics=(*_statistics(queries), _spread_of_scores(queries, keys)),
        notes=("rows grow or shrink with p, so no rotation; scores do depend on distance alone",),
    )


def _alibi(job: PositionJob) -> PositionReport:
    bias = alibi_bias(job.heads, 1, job.length)[:, 0].flip(-1)  #   (H, S), by distance
    away = relative_distance(job.length, job.length).abs()  #       (S, S)
    return PositionReport(
        formula=("score[i, j] = q_i . k_j / sqrt(width) - m_h |i - j|",),
        pictures=(
            _picture("bias of head 0", "query", "key", bias[0][away], job),
            _picture("bias of every head", "head", "distance", bias, job),
        ),
        curve=_curve("bias of head 0, by distance", Distances(bias[0], torch.zeros_like(bias[0]))),
        statistics=tuple(
            Statistic(id=f"slope_{h}", text=f"slope m of head {h}", value=m)
            for h, m in enumerate(alibi_slopes(job.heads).tolist())
        ),
        notes=("under a causal mask keys after the query are masked anyway",),
    )


def _t5(job: PositionJob) -> PositionReport:
    both = t5_buckets(torch.arange(1 - job.length, job.length))  #          (2S - 1,)
    causal = t5_buckets(-torch.arange(job.length), bidirectional=False)  #  (S,)
    before = both[: job.length].flip(0).double()  #                         (S,)
    buckets = t5_buckets(relative_distance(job.length, job.length))  #      (S, S)
    facts = (
        ("buckets", "buckets", 32),
        ("max_distance", "all distances from here on share the last bucket", 128),
        ("used_both", "buckets in use here, both directions", len(torch.unique(both))),
        ("used_causal", "buckets in use here, causal", len(torch.unique(causal))),
    )
    return PositionReport(
        formula=("score[i, j] = q_i . k_j + b[h, bucket(j - i)]", "T5 has no 1 / sqrt(width)"),
        pictures=(_picture("the bucket of each pair", "query", "key", buckets, job),),
        curve=_curve(
            "bucket of a key before the query, by distance",
            Distances(before, torch.zeros_like(before)),
        ),
        statistics=tuple(Statistic(id=i, text=text, value=float(v)) for i, text, v in facts),
        notes=(
            "one number is learned for each bucket and head, and added to the score",
            "keys after the query have buckets 17 to 31",
        ),
    )


def _xl(job: PositionJob) -> PositionReport:
    table = relative_sinusoids(1, job.length, job.dim).flip(0)  # (S, D), row d is distance d
    return PositionReport(
        formula=(
            "score[i, j] = (q_i + u) . k_j + (q_i + v) . W R[i - j]",
            "R[d] = sin(d w_i) for all i, then cos(d w_i); w_i = 10000^(-2i/dim)",
        ),
        pictures=(_picture("the table R", "distance", "column", table, job),),
        frequencies=frequency_table(job.dim, 10000.0, "concatenated"),
        curve=_curve("R[0] . R[d], by distance", by_distance(dot_product_distance(table))),
        statistics=_statistics(table),
        rotation=_rotation(table, "concatenated"),
        notes=("rows are distances, not positions: a query looks up its distance to each key",),
    )


def _grid(job: PositionJob) -> PositionReport:
    height = max(n for n in range(1, math.isqrt(job.length) + 1) if job.length % n == 0)
    width = job.length // height
    table = sinusoidal_grid_encoding(height, width, job.dim, job.base, dtype=torch.float64)
    middle = (height // 2) * width + width // 2
    alike = (table @ table[middle]).view(height, width)
    line = table[:width]  # the first row of the grid
    place = f"row {height // 2}, column {width // 2}"
    return PositionReport(
        formula=(
            f"a grid of {height} x {width} cells",
            "PE[y, x] = [PE of y | PE of x], each of dim / 2 columns",
        ),
        pictures=(
            _picture("the table, cell after cell", "cell", "column", table, job),
            _picture(f"dot product with {place}", "row", "column", alike, job),
        ),
        frequencies=frequency_table(job.dim // 2, job.base),
        curve=_curve("dot product of two cells of a row, by distance", by_distance(line @ line.T)),
        statistics=_statistics(table),
        rotation=_rotation(line),
        notes=("frequencies are those of each half; the rotation is k cells along a row",),
    )


KINDS: dict[Kind, Callable[[PositionJob], PositionReport]] = {
    "sinusoidal": _sinusoidal,
    "learned": _learned,
    "rope": _rope,
    "alibi": _alibi,
    "t5": _t5,
    "xl": _xl,
    "xpos": _xpos,
    "2d": _grid,
}


# ---------------------------------------------------------------- pieces


def _picture(title: str, down: str, across: str, matrix: Tensor, job: PositionJob) -> Picture:
    """Every n-th row and column, at most as many as the job asks for."""
    height, width = matrix.shape
    rows, columns = _strided_indices(height, job.rows), _strided_indices(width, job.columns)
    return Picture(
        title=title,
        down=down,
        across=across,
        shape=(height, width),
        rows=tuple(rows),
        columns=tuple(columns),
        values=tuple(map(tuple, matrix[rows][:, columns].double().tolist())),
    )


def _strided_indices(count: int, most: int) -> list[int]:
    return list(range(0, count, max(1, math.ceil(count / most))))


def _curve(title: str, distances: Distances) -> Curve:
    at = _strided_indices(len(distances.mean), POINTS)
    return Curve(
        title=title,
        count=len(distances.mean),
        distances=tuple(at),
        values=tuple(distances.mean[at].tolist()),
        spread=distances.spread.max().item(),
    )


def _statistics(table: Tensor) -> tuple[Statistic, ...]:
    s = encoding_statistics(table)
    facts = [
        Statistic(id="norm_min", text="norm of the shortest row", value=s.norm_min),
        Statistic(id="norm_max", text="norm of the longest row", value=s.norm_max),
        Statistic(id="norm_expected", text="sqrt(D/2), a sinusoidal row's", value=s.norm_expected),
        Statistic(id="mean", text="mean of all entries", value=s.mean),
        Statistic(id="variance", text="variance of all entries", value=s.variance),
        Statistic(id="min", text="smallest entry", value=s.min),
        Statistic(id="max", text="largest entry", value=s.max),
    ]
    if len(table) > 1:
        u = uniqueness(table[:FEW])
        facts += [
            Statistic(
                id="distinct", text=f"different rows of {min(len(table), FEW)}", value=u.distinct
            ),
            Statistic(id="nearest", text="distance between the nearest two", value=u.nearest),
        ]
    return tuple(facts)


def _spread_after_weights(table: Tensor) -> tuple[Statistic, ...]:
    """How much dot products at one distance still differ once W_q and W_k are applied."""
    D = table.shape[1]
    table = table[:FEW]
    generator = torch.Generator().manual_seed(0)
    weights = torch.randn(2, D, D, dtype=torch.float64, generator=generator) / math.sqrt(D)
    spread = by_distance(dot_product_distance(table, *weights)).spread.max().item()
    text = "after random W_q, W_k, products at one distance differ by"
    return (Statistic(id="spread_after_weights", text=text, value=spread),)


def _spread_of_scores(queries: Tensor, keys: Tensor) -> Statistic:
    """How much scores of two random vectors at one distance differ."""
    generator = torch.Generator().manual_seed(0)
    rotated = []
    for table in (queries, keys):
        pairs = torch.view_as_complex(table.reshape(len(table), -1, 2))  #         (S, width/2)
        content = torch.randn(pairs.shape[1], dtype=pairs.dtype, generator=generator)
        rotated.append(torch.view_as_real(pairs * content).flatten(1))  #      (S, width)
    spread = by_distance(rotated[1] @ rotated[0].T).spread.max().item()  #      key by query
    text = "scores of two random vectors at one distance differ by"
    return Statistic(id="spread_of_scores", text=text, value=spread)


def _rotation(table: Tensor, layout: str = "interleaved") -> tuple[RotationTest, ...]:
    """Whether a rotation shifts the table, for each offset shorter than it."""
    errors = {
        k: relative_position_matrix(table, k, layout).error for k in OFFSETS if k < len(table)
    }
    return tuple(RotationTest(offset=k, error=e, holds=e < EXACT) for k, e in errors.items())


def _unused_sizes(job: PositionJob) -> tuple[str, ...]:
    """A note for each size that was given and has no effect on this kind."""
    plain = PositionJob(kind=job.kind)
    sizes = ("dim", "heads", "base")
    asked = [n for n in sizes if n not in USES[job.kind] and getattr(job, n) != getattr(plain, n)]
    return tuple(f"{name} has no effect here" for name in asked)
