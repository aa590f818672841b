"""The report on one kind of positions: pictures, frequencies, the effect of distance, statistics.

Trusted code: everything is computed from the references; no user's module is run.
"""

import math
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from attnlab.records.position import USES, Frequency, Kind, PositionJob, PositionReport, Statistic
from attnlab.references.alibi import alibi_bias, alibi_slopes
from attnlab.references.analysis import (
    Distances,
    by_distance,
    dot_product_distance,
    frequency_table,
)
from attnlab.references.grid import sinusoidal_grid_encoding
from attnlab.references.learned import LearnedPositionalEncoding
from attnlab.references.position_facts import (
    curve,
    picture,
    plane,
    rotation_tests,
    series,
    spread_after_weights,
    spread_of_scores,
    statistics,
    waves_beyond,
)
from attnlab.references.positional import sines_and_cosines, sinusoidal_positional_encoding
from attnlab.references.relative import relative_distance, t5_buckets
from attnlab.references.rotary import rotary_frequencies, rotary_table
from attnlab.references.rotary_scaling import (
    DynamicNTKScaling,
    LinearScaling,
    Llama3Scaling,
    NTKScaling,
    RotaryScaling,
    YaRNScaling,
)
from attnlab.references.transformer_xl import relative_sinusoids
from attnlab.references.xpos import xpos_table

SPREAD = 0.2  # of random frequencies, in radians a position
DOT = "dot product of two rows, by distance"


def build_position_report(job: PositionJob) -> PositionReport:
    report = KINDS[job.kind](job)
    return replace(report, notes=(*report.notes, *_unused_sizes(job)))


# ---------------------------------------------------------------- the kinds


def _sinusoidal(job: PositionJob) -> PositionReport:
    layout, half = job.layout or "interleaved", job.layout == "concatenated"
    table = sinusoidal_positional_encoding(
        job.length, job.dim, job.base, layout=layout, dtype=torch.float64
    )
    gram = by_distance(dot_product_distance(table))
    waves = frequency_table(job.dim, job.base, layout)
    places = ("PE[p, i]", "PE[p, i + dim/2]") if half else ("PE[p, 2i]", "PE[p, 2i+1]")
    report = PositionReport(
        formula=(f"{places[0]} = sin(p w_i)", f"{places[1]} = cos(p w_i)", "w_i = base^(-2i/dim)"),
        pictures=(picture("the table", "position", "column", table, job),),
        frequencies=waves,
        curve=curve(DOT, gram),
        statistics=(*statistics(table), *spread_after_weights(table)),
        rotation=rotation_tests(table, layout),
        beyond=waves_beyond(job, waves, waves),
    )
    return _with_rows(report, table, job)


def _learned(job: PositionJob) -> PositionReport:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        table = LearnedPositionalEncoding(job.dim, job.length).get_encoding(job.length).double()
    odd, left = job.dim % 2 == 1, max(0, job.length - job.seen)
    report = PositionReport(
        formula=("PE[p] = W[p]", "W is trained, and initialised from N(0, 0.02^2)"),
        pictures=(picture("the table as initialised", "position", "column", table, job),),
        curve=curve(DOT, by_distance(dot_product_distance(table))),
        statistics=statistics(table),
        rotation=() if odd else rotation_tests(table),
        beyond=(Statistic(id="untrained", text="rows as they were drawn", value=left),),
        notes=("before training, rows are independent: no frequencies, no effect of distance",),
    )
    return _with_rows(report, table, job)


def _rope(job: PositionJob) -> PositionReport:
    layout, scaling = job.layout or "interleaved", _scaling(job)
    table = rotary_table(job.length, job.width, job.base, layout=layout, scaling=scaling)
    columns = "concatenated" if layout == "half" else layout
    trained = frequency_table(job.width, job.base, columns)
    speeds = rotary_frequencies(job.width, job.base, scaling=scaling, length=job.length).tolist()
    waves = tuple(
        replace(wave, frequency=w, wavelength=2 * math.pi / w)
        for wave, w in zip(trained, speeds, strict=True)
    )
    factor = scaling.attention_factor**2 if scaling else 1.0
    louder = Statistic(id="louder", text="scores are multiplied by", value=factor)
    report = PositionReport(
        formula=(
            "pair i of a query or key at p is rotated by p w_i",
            f"w_i = base^(-2i/{job.width}) in heads of dim / heads = {job.width}",
            *_scaled_formula(job),
        ),
        pictures=(
            picture("vectors (1, 0) rotated, pair by pair", "position", "column", table, job),
        ),
        frequencies=waves,
        curve=curve("score of that vector with itself, by distance", by_distance(table @ table.T)),
        statistics=(
            *statistics(table),
            spread_of_scores(table, table, layout),
            *((louder,) if factor != 1 else ()),
        ),
        rotation=rotation_tests(table, columns),
        beyond=waves_beyond(job, waves, trained),
    )
    return _with_rows(report, table, job)


def _scaling(job: PositionJob) -> RotaryScaling | None:
    """The recipe that a job names, for a model trained on the positions it has seen."""
    recipes: dict[str, Callable[[], RotaryScaling]] = {
        "linear": lambda: LinearScaling(job.factor),
        "ntk": lambda: NTKScaling(job.factor),
        "dynamic": lambda: DynamicNTKScaling(job.factor, job.seen),
        "yarn": lambda: YaRNScaling(job.factor, job.seen),
        "llama3": lambda: Llama3Scaling(job.factor, job.seen),
    }
    return recipes[job.scaling]() if job.scaling else None


def _scaled_formula(job: PositionJob) -> tuple[str, ...]:
    if not job.scaling:
        return ()
    return (f"then scaled: {job.scaling} by {job.factor:g}, trained on {job.seen} positions",)


def _xpos(job: PositionJob) -> PositionReport:
    queries = xpos_table(job.length, job.width, job.base)
    keys = xpos_table(job.length, job.width, job.base, key=True)
    scores = by_distance(keys @ queries.T)  # transposed: of keys that are not after the query
    waves = frequency_table(job.width, job.base)
    report = PositionReport(
        formula=(
            "as RoPE; queries times zeta_i^(p/512), keys times zeta_i^(-p/512)",
            "zeta_i = (2i/width + 0.4) / 1.4",
        ),
        pictures=(picture("(1, 0, 1, 0, ...) as a query", "position", "column", queries, job),),
        frequencies=waves,
        curve=curve("score of that vector with itself, by distance", scores),
        statistics=(*statistics(queries), spread_of_scores(queries, keys)),
        beyond=waves_beyond(job, waves, waves),
        notes=("rows grow or shrink with p, so no rotation; scores do depend on distance alone",),
    )
    return _with_rows(report, queries, job)


def _alibi(job: PositionJob) -> PositionReport:
    bias = alibi_bias(job.heads, 1, job.length)[:, 0].flip(-1)  #   (H, S), by distance
    away = relative_distance(job.length, job.length).abs()  #       (S, S)

    def low(length: int) -> float:
        return bias[:, min(length, job.length) - 1].min().item()

    return PositionReport(
        formula=("score[i, j] = q_i . k_j / sqrt(width) - m_h |i - j|",),
        pictures=(
            picture("bias of head 0", "query", "key", bias[0][away], job),
            picture("bias of every head", "head", "distance", bias, job),
        ),
        curve=curve("bias of head 0, by distance", Distances(bias[0], torch.zeros_like(bias[0]))),
        statistics=tuple(
            Statistic(id=f"slope_{h}", text=f"slope m of head {h}", value=m)
            for h, m in enumerate(alibi_slopes(job.heads).tolist())
        ),
        beyond=(
            Statistic(id="lowest_seen", text="lowest bias in training", value=low(job.seen)),
            Statistic(id="lowest", text="lowest bias here", value=low(job.length)),
        ),
        notes=("under a causal mask keys after the query are masked anyway",),
    )


def _t5(job: PositionJob) -> PositionReport:
    both = t5_buckets(torch.arange(1 - job.length, job.length))  #          (2S - 1,)
    causal = t5_buckets(-torch.arange(job.length), bidirectional=False)  #  (S,)
    before = both[: job.length].flip(0).double()  #                         (S,)
    buckets = t5_buckets(relative_distance(job.length, job.length))  #      (S, S)
    far = set(before.tolist()) - set(before[: job.seen].tolist())
    new = float(len(far))
    reach = -torch.arange(128)
    ends = [
        int((t5_buckets(reach, bidirectional=both_ways) == last).nonzero()[0])
        for both_ways, last in ((True, 15), (False, 31))
    ]
    facts = (
        ("buckets", "buckets", 32),
        ("max_distance", "max_distance, where the logarithm ends", 128),
        ("last_both", "distance at which the last bucket begins, both directions", ends[0]),
        ("last_causal", "distance at which the last bucket begins, causal", ends[1]),
        ("used_both", "buckets in use here, both directions", len(torch.unique(both))),
        ("used_causal", "buckets in use here, causal", len(torch.unique(causal))),
    )
    return PositionReport(
        formula=("score[i, j] = q_i . k_j + b[h, bucket(j - i)]", "T5 has no 1 / sqrt(width)"),
        pictures=(picture("the bucket of each pair", "query", "key", buckets, job),),
        curve=curve(
            "bucket of a key before the query, by distance",
            Distances(before, torch.zeros_like(before)),
        ),
        statistics=tuple(Statistic(id=i, text=text, value=float(v)) for i, text, v in facts),
        beyond=(
            Statistic(
                id="new_buckets", text="buckets of earlier keys that training never used", value=new
            ),
        ),
        notes=(
            "one number is learned for each bucket and head, and added to the score",
            "keys after the query have buckets 17 to 31",
        ),
    )


def _xl(job: PositionJob) -> PositionReport:
    table = relative_sinusoids(1, job.length, job.dim).flip(0)  # (S, D), row d is distance d
    waves = frequency_table(job.dim, 10000.0, "concatenated")
    report = PositionReport(
        formula=(
            "score[i, j] = (q_i + u) . k_j + (q_i + v) . W R[i - j]",
            "R[d] = sin(d w_i) for all i, then cos(d w_i); w_i = 10000^(-2i/dim)",
        ),
        pictures=(picture("the table R", "distance", "column", table, job),),
        frequencies=waves,
        curve=curve("R[0] . R[d], by distance", by_distance(dot_product_distance(table))),
        statistics=statistics(table),
        rotation=rotation_tests(table, "concatenated"),
        beyond=waves_beyond(job, waves, waves),
        notes=("rows are distances, not positions: a query looks up its distance to each key",),
    )
    return _with_rows(report, table, job)


def _grid(job: PositionJob) -> PositionReport:
    height = max(n for n in range(1, math.isqrt(job.length) + 1) if job.length % n == 0)
    width = job.length // height
    table = sinusoidal_grid_encoding(height, width, job.dim, job.base, dtype=torch.float64)
    middle = (height // 2) * width + width // 2
    alike = (table @ table[middle]).view(height, width)
    line = table[:width]  # the first row of the grid
    place = f"row {height // 2}, column {width // 2}"
    report = PositionReport(
        formula=(
            f"a grid of {height} x {width} cells",
            "PE[y, x] = [PE of y | PE of x], each of dim / 2 columns",
        ),
        pictures=(
            picture("the table, cell after cell", "cell", "column", table, job),
            picture(f"dot product with {place}", "row", "column", alike, job),
        ),
        frequencies=frequency_table(job.dim // 2, job.base),
        curve=curve("dot product of two cells of a row, by distance", by_distance(line @ line.T)),
        statistics=statistics(table),
        rotation=rotation_tests(line),
        notes=("frequencies are those of each half; the rotation is k cells along a row",),
    )
    return _with_rows(report, table, job)


def _fourier(job: PositionJob) -> PositionReport:
    generator = torch.Generator().manual_seed(0)
    drawn = torch.randn(job.dim // 2, dtype=torch.float64, generator=generator).abs() * SPREAD
    speeds = drawn.sort(descending=True).values  #                           (D/2,)
    places = torch.arange(job.length, dtype=torch.float64)  #                (S,)
    table = sines_and_cosines(torch.outer(places, speeds))  #                (S, D)
    waves = tuple(
        Frequency(pair=i, columns=(2 * i, 2 * i + 1), frequency=w, wavelength=2 * math.pi / w)
        for i, w in enumerate(speeds.tolist())
    )
    report = PositionReport(
        formula=(
            "PE[p, 2i] = sin(p w_i)",
            "PE[p, 2i+1] = cos(p w_i)",
            f"w_i = |N(0, {SPREAD:g}^2)|: random Fourier features of one coordinate",
        ),
        pictures=(picture("the table", "position", "column", table, job),),
        frequencies=waves,
        curve=curve(DOT, by_distance(dot_product_distance(table))),
        statistics=statistics(table),
        rotation=rotation_tests(table),
        beyond=waves_beyond(job, waves, waves),
        notes=(
            "products fall as exp(-(0.2 d)^2 / 2): from some ten positions on all look equally far",
        ),
    )
    return _with_rows(report, table, job)


def _number(job: PositionJob) -> PositionReport:
    table = torch.arange(job.length, dtype=torch.float64)[:, None]  #        (S, 1)
    last = Statistic(id="largest_seen", text="largest in training", value=job.seen - 1)
    report = PositionReport(
        formula=("PE[p] = p",),
        pictures=(picture("the only column", "position", "column", table, job),),
        curve=curve("product of two positions, by distance", by_distance(table @ table.T)),
        statistics=statistics(table),
        beyond=(last, Statistic(id="largest", text="largest here", value=job.length - 1)),
        notes=(
            "a counter-example: it grows without bound and drowns what it is added to",
            "a product of two positions does not tell how far apart they are",
        ),
    )
    return _with_rows(report, table, job)


def _with_rows(report: PositionReport, table: Tensor, job: PositionJob) -> PositionReport:
    return replace(report, series=series(table, job), plane=plane(table))


KINDS: dict[Kind, Callable[[PositionJob], PositionReport]] = {
    "sinusoidal": _sinusoidal,
    "learned": _learned,
    "rope": _rope,
    "alibi": _alibi,
    "t5": _t5,
    "xl": _xl,
    "xpos": _xpos,
    "2d": _grid,
    "fourier": _fourier,
    "number": _number,
}


def _unused_sizes(job: PositionJob) -> tuple[str, ...]:
    """A note for each size that was given and has no effect on this kind."""
    plain = PositionJob(kind=job.kind)
    sizes = ("dim", "heads", "base", "layout", "scaling")
    asked = [n for n in sizes if n not in USES[job.kind] and getattr(job, n) != getattr(plain, n)]
    return tuple(f"{name} has no effect here" for name in asked)
