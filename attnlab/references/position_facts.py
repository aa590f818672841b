"""What a portrait of positions shows of a table: pictures, curves, statistics, its plane, and what
lies beyond the positions that training showed."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from attnlab.records.position import (
    OFFSETS,
    Curve,
    Frequency,
    Picture,
    Plane,
    PositionJob,
    RotationTest,
    Series,
    Statistic,
)
from attnlab.references.analysis import (
    Distances,
    by_distance,
    dot_product_distance,
    encoding_statistics,
    relative_position_matrix,
    uniqueness,
)

EXACT = 1e-10  # the largest error of an exact rotation
POINTS = 512  # the most points of a curve
FEW = 1000  # rows that the slower statistics use


def picture(title: str, down: str, across: str, matrix: Tensor, job: PositionJob) -> Picture:
    """Every n-th row and column, at most as many as the job asks for."""
    height, width = matrix.shape
    rows, columns = strided_indices(height, job.rows), strided_indices(width, job.columns)
    return Picture(
        title=title,
        down=down,
        across=across,
        shape=(height, width),
        rows=tuple(rows),
        columns=tuple(columns),
        values=tuple(map(tuple, matrix[rows][:, columns].double().tolist())),
    )


def strided_indices(count: int, most: int) -> list[int]:
    return list(range(0, count, max(1, math.ceil(count / most))))


def curve(title: str, distances: Distances) -> Curve:
    at = strided_indices(len(distances.mean), POINTS)
    return Curve(
        title=title,
        count=len(distances.mean),
        distances=tuple(at),
        values=tuple(distances.mean[at].tolist()),
        spread=distances.spread.max().item(),
    )


def statistics(table: Tensor) -> tuple[Statistic, ...]:
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


def spread_after_weights(table: Tensor) -> tuple[Statistic, ...]:
    """How much dot products at one distance still differ once W_q and W_k are applied."""
    D = table.shape[1]
    table = table[:FEW]
    generator = torch.Generator().manual_seed(0)
    weights = torch.randn(2, D, D, dtype=torch.float64, generator=generator) / math.sqrt(D)
    spread = by_distance(dot_product_distance(table, *weights)).spread.max().item()
    text = "after random W_q, W_k, products at one distance differ by"
    return (Statistic(id="spread_after_weights", text=text, value=spread),)


def spread_of_scores(queries: Tensor, keys: Tensor, layout: str = "interleaved") -> Statistic:
    """How much scores of two random vectors at one distance differ."""
    if layout == "half":
        queries, keys = (t.view(len(t), 2, -1).transpose(1, 2).flatten(1) for t in (queries, keys))
    generator = torch.Generator().manual_seed(0)
    rotated = []
    for table in (queries, keys):
        pairs = torch.view_as_complex(table.reshape(len(table), -1, 2))  #         (S, width/2)
        content = torch.randn(pairs.shape[1], dtype=pairs.dtype, generator=generator)
        rotated.append(torch.view_as_real(pairs * content).flatten(1))  #      (S, width)
    spread = by_distance(rotated[1] @ rotated[0].T).spread.max().item()  #      key by query
    text = "scores of random vectors at one distance differ by"
    return Statistic(id="spread_of_scores", text=text, value=spread)


def rotation_tests(table: Tensor, layout: str = "interleaved") -> tuple[RotationTest, ...]:
    """Whether a rotation shifts the table, for each offset shorter than it."""
    errors = {
        k: relative_position_matrix(table, k, layout).error for k in OFFSETS if k < len(table)
    }
    return tuple(RotationTest(offset=k, error=e, holds=e < EXACT) for k, e in errors.items())


def series(table: Tensor, job: PositionJob) -> tuple[Series, ...]:
    """The norm of each position, and the variance of each column over the positions."""
    found = encoding_statistics(table)
    named = (("norm of each position", found.norms, job.rows),
             ("variance of each column", found.column_variances, job.columns))  # fmt: skip
    return tuple(_series(title, values, most) for title, values, most in named)


def _series(title: str, values: Tensor, most: int) -> Series:
    at = strided_indices(len(values), most)
    return Series(title=title, at=tuple(at), values=tuple(values[at].tolist()))


def plane(table: Tensor) -> Plane | None:
    """The rows in their first two principal directions, None where no two rows differ.

    Shapes
        table  (S, D)
    """
    centred = table.double() - table.double().mean(dim=0)
    total = centred.square().sum().item()
    if len(table) < 2 or total == 0:
        return None
    _, strength, directions = torch.linalg.svd(centred, full_matrices=False)
    points = centred[strided_indices(len(centred), POINTS)] @ directions[:2].T  # (n, 2 or 1)
    points = torch.nn.functional.pad(points, (0, 2 - points.shape[1]))
    shares = [*(strength[:2].square() / total).tolist(), 0.0]
    return Plane(points=tuple((x, y) for x, y in points.tolist()), shares=(shares[0], shares[1]))


def waves_beyond(
    job: PositionJob, waves: Sequence[Frequency], trained: Sequence[Frequency]
) -> tuple[Statistic, ...]:
    """Of pairs that turn: those whose angles beyond the trained positions training never showed.

    A pair that completed a turn in training has shown all its angles. Another one meets new ones
    where it turns further over all positions than it did over the trained ones. `trained` holds the
    frequencies with which the module was trained, `waves` those in use now."""
    seen = job.seen
    whole = sum(wave.wavelength <= seen for wave in trained)
    new = sum(
        then.wavelength > seen and now.frequency * job.length > then.frequency * seen * (1 + 1e-9)
        for now, then in zip(waves, trained, strict=True)
    )
    return (
        Statistic(id="whole_turns", text=f"pairs of {len(waves)} that turned once", value=whole),
        Statistic(id="new_angles", text="pairs with angles never shown", value=new),
    )
