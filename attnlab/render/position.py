"""The portrait of a kind of positions."""

from collections.abc import Sequence

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from attnlab.records import plain, record
from attnlab.records.position import (
    KINDS,
    USES,
    Curve,
    Frequency,
    PositionJob,
    PositionReport,
    RotationTest,
    Statistic,
)
from attnlab.render.bars import show_bars, sparkline, subset_label
from attnlab.render.heat import show_heat
from attnlab.render.json import Document, pick
from attnlab.render.scatter import scatter_lines
from attnlab.render.screen import Screen, bare_table

MOST = 10  # rows of a table on the screen; the document has all
PLANE = 8  # lines of the plane
TINY = 1e-9  # of the largest value: what rounding explains


@record
class PositionPage:
    job: PositionJob
    report: PositionReport

    def show(self, screen: Screen) -> None:
        job, report = self.job, self.report
        sizes = " ".join(
            f"{name}={format_setting(job, name)}"
            for name in USES[job.kind]
            if name not in ("layout", "scaling") or getattr(job, name)
        )
        screen.say((job.kind, "title"), f"  {KINDS[job.kind]}")
        screen.say((sizes, "name"), indent=2)
        for line in report.formula:
            screen.say(line, indent=2)
        for picture in report.pictures:
            screen.gap()
            show_heat(picture, screen)
        _show_frequencies(report.frequencies, job.length, screen)
        if report.curve:
            _show_curve(report.curve, screen)
        _show_statistics(report.statistics, screen)
        show_series(report, screen)
        _show_plane(report, screen)
        _show_rotation(report.rotation, screen)
        if job.trained or job.scaling:
            beyond = f"beyond the {job.seen} positions of training, up to {job.length}"
            _show_statistics(report.beyond, screen, beyond)
        if report.notes:
            screen.gap()
        for note in report.notes:
            screen.hang((f"{screen.marks.note} ", "aside"), note)
        if job.kind == "sinusoidal":
            screen.do_next("attnlab lesson sinusoidal works a small table out by hand")

    def document(self) -> Document:
        report = self.report
        return {
            **pick(self.job, "kind", "dim", "length", "heads", "base"),
            **pick(report, "formula", "pictures", "frequencies"),
            "distance": plain(report.curve),
            "statistics": {fact.id: fact.value for fact in report.statistics},
            **pick(report, "rotation", "series", "plane"),
            "trained": self.job.seen,
            "beyond": {fact.id: fact.value for fact in report.beyond},
            **pick(report, "notes"),
        }


def format_setting(job: PositionJob, name: str) -> str:
    if name == "scaling":
        return f"{job.scaling}:{job.factor:g}" if job.scaling else "none"
    if name == "layout":
        return job.layout or "interleaved"
    return f"{getattr(job, name):g}"


def _show_frequencies(waves: Sequence[Frequency], length: int, screen: Screen) -> None:
    if not waves:
        return
    screen.gap()
    screen.say(("frequencies", "title"), ": the fast pairs first")
    heads = ("pair", "columns", "radians a position", "wavelength", f"turns in {length}")
    table = bare_table(*heads, right=heads, header="dim")
    for wave in sample_rows(waves):
        sine, cosine = wave.columns
        turns = length / wave.wavelength
        cells = (f"{wave.frequency:.6g}", f"{wave.wavelength:,.2f}", f"{turns:.3g}")
        table.add_row(str(wave.pair), f"{sine}, {cosine}", *cells)
    screen.print(Padding(table, (0, 0, 0, 2), expand=False))
    _show_left_out(len(waves), screen)


def sample_rows(rows: Sequence[Frequency]) -> list[Frequency]:
    """The first, the last, and some between them."""
    if len(rows) <= MOST:
        return list(rows)
    return [rows[round(i * (len(rows) - 1) / (MOST - 1))] for i in range(MOST)]


def _show_left_out(count: int, screen: Screen) -> None:
    if count > MOST:
        screen.say((f"{MOST} of {count}; --json has all", "aside"), indent=2)


def _show_curve(curve: Curve, screen: Screen) -> None:
    screen.heading(curve.title)
    shown = show_bars(curve.distances, curve.values, screen)
    if len(shown) < curve.count:
        screen.say(("only " + subset_label("distance", shown, curve.count), "aside"))
    most = max(map(abs, curve.values)) or 1.0
    alone = "it depends on distance alone" + f" (to {curve.spread:.1g})" * bool(curve.spread)
    mean = (
        "the mean of all pairs so far apart: they differ by up to "
        f"{curve.spread:.3g}, so distance alone does not decide"
    )
    screen.say(alone if curve.spread <= TINY * most else mean)


def _show_statistics(facts: Sequence[Statistic], screen: Screen, title: str = "statistics") -> None:
    if not facts:
        return
    screen.heading(title)
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column()
    table.add_column(justify="right")
    for fact in facts[:MOST]:
        table.add_row(Text(fact.text), Text(f"{fact.value:.5g}"))
    screen.print(Padding(table, (0, 0, 0, 2), expand=False))
    _show_left_out(len(facts), screen)


def _show_rotation(turns: Sequence[RotationTest], screen: Screen) -> None:
    if not turns:
        return
    screen.gap()
    screen.say(("k positions further", "title"), ": one rotation M_k, the same for every p?")
    marks = screen.marks
    heads = ("k", "largest error", "")
    table = bare_table(*heads, right=heads, header="dim")
    for turn in turns:
        said = f"{marks.ok} yes" if turn.holds else f"{marks.skip} no"
        table.add_row(str(turn.offset), f"{turn.error:.1e}", Text(said, style="ok" * turn.holds))
    screen.print(Padding(table, (0, 0, 0, 2), expand=False))


def show_series(report: PositionReport, screen: Screen, of: str = "") -> None:
    """The norms of positions and the variances of columns, a line each."""
    if report.series:
        screen.gap()
    for series in report.series:
        low, high = min(series.values), max(series.values)
        title = f"{series.title}{f' of {of}' if of else ''}: "
        if high - low <= TINY * max(abs(high), 1.0):
            screen.say((title, "title"), f"{high:.4g} for all")
            continue
        screen.say((title, "title"), f"{low:.4g} to {high:.4g}")
        screen.one_line(("  " + sparkline(series.values, screen), "name"))


def _show_plane(report: PositionReport, screen: Screen) -> None:
    if report.plane is None:
        return
    share = sum(report.plane.shares)
    title = f"rows in their two main directions (PCA), {share:.0%} of their variance"
    screen.heading(title)
    for line in scatter_lines(report.plane.points, screen, 4 * PLANE, PLANE):
        screen.one_line(("  " + line, "name"))
    screen.say(("0: the first position, n: the last", "aside"), indent=2)
