"""Two kinds of positions, bases, scalings or layouts side by side."""

from collections.abc import Sequence

from rich.padding import Padding

from attnlab.records import record
from attnlab.records.position import KINDS, USES, PositionJob, PositionReport, Statistic
from attnlab.render.bars import sparkline
from attnlab.render.json import Document
from attnlab.render.position import PositionPage, format_setting, sample_rows, show_series
from attnlab.render.scatter import scatter_lines
from attnlab.render.screen import Screen, bare_table, truncate

LINES = 8  # of a plane
NONE = "-"


@record
class PositionPairPage:
    one: PositionPage
    other: PositionPage

    def show(self, screen: Screen) -> None:
        jobs, reports = (self.one.job, self.other.job), (self.one.report, self.other.report)
        names = name_both(*jobs)
        for name, job, report in zip(names, jobs, reports, strict=True):
            alone = "" if job.kind in name.split() else f"{job.kind} "
            screen.say((alone + name, "title"), f"  {KINDS[job.kind]}")
            for line in report.formula:
                screen.say((line, "aside"), indent=2)
        _show_table(screen, "statistics", names, _statistics_rows([r.statistics for r in reports]))
        _show_table(screen, "wavelengths, in positions", names, _wave_rows(reports))
        for name, report in zip(names, reports, strict=True):
            show_series(report, screen, of=name)
        _show_curves(screen, names, reports)
        _show_planes(screen, names, reports)
        _show_table(
            screen, "k positions further: one rotation?", names, _turn_rows(reports, screen)
        )
        seen, theirs = (f"trained on {j.seen} positions, used on {j.length}" for j in jobs)
        if seen != theirs:
            seen = f"{names[0]}: {seen}; {names[1]}: {theirs}"
        _show_table(screen, seen, names, _statistics_rows([r.beyond for r in reports]))
        for name, report in zip(names, reports, strict=True):
            for note in report.notes:
                screen.hang((f"{screen.marks.note} ", "aside"), f"{name}: {note}")
        kind = jobs[0].kind
        screen.do_next(f"attnlab position {kind} shows {kind} alone, with its map")

    def document(self) -> Document:
        return {"positions": [self.one.document(), self.other.document()]}


def name_both(one: PositionJob, other: PositionJob) -> tuple[str, str]:
    """Each by what tells it from the other: `rope` and `alibi`, `base=500000` and `base=10000`."""
    shared = set(USES[one.kind]) & set(USES[other.kind])
    return _name(one, other, shared), _name(other, one, shared)


def _name(job: PositionJob, other: PositionJob, shared: set[str]) -> str:
    told = [
        f"{setting}={format_setting(job, setting)}"
        for setting in (*USES[job.kind], "trained")
        if setting in shared | {"trained"}
        and format_setting(job, setting) != format_setting(other, setting)
    ]
    return " ".join(told if told and job.kind == other.kind else [job.kind, *told])


# ---------------------------------------------------------------- the parts

Row = tuple[str, str, str]


def _show_table(screen: Screen, title: str, names: Sequence[str], rows: Sequence[Row]) -> None:
    if not rows:
        return
    screen.heading(title)
    table = bare_table("", *names, right=names, header="dim")
    values = zip(names, *(row[1:] for row in rows), strict=True)  # of these nothing is cut off
    room = screen.width - 4 - sum(max(map(len, column)) + 2 for column in values)
    for text, *cells in rows:
        table.add_row(truncate(text, max(room, 8), screen.marks.dots), *cells)
    screen.print(Padding(table, (0, 0, 0, 2), expand=False))


def _statistics_rows(facts: Sequence[Sequence[Statistic]]) -> list[Row]:
    """Those of either, in order; where one has none of a kind, a dash."""
    mine, theirs = ({fact.id: fact for fact in few} for few in facts)
    return [
        (fact.text, _number(mine.get(key)), _number(theirs.get(key)))
        for key, fact in (theirs | mine).items()
        if not key.startswith("slope_") or key == "slope_0"
    ]


def _number(fact: Statistic | None) -> str:
    return f"{fact.value:.5g}" if fact else NONE


def _wave_rows(reports: Sequence[PositionReport]) -> list[Row]:
    waves = [report.frequencies for report in reports]
    longest = max(waves, key=len)
    cells = [{wave.pair: f"{wave.wavelength:,.2f}" for wave in few} for few in waves]
    return [
        (f"pair {wave.pair}", cells[0].get(wave.pair, NONE), cells[1].get(wave.pair, NONE))
        for wave in sample_rows(longest)
    ]


def _turn_rows(reports: Sequence[PositionReport], screen: Screen) -> list[Row]:
    cells = [
        {
            turn.offset: f"{screen.marks.ok} yes" if turn.holds else f"no, off by {turn.error:.1e}"
            for turn in report.rotation
        }
        for report in reports
    ]
    return [
        (f"k = {k}", cells[0].get(k, NONE), cells[1].get(k, NONE))
        for k in sorted(cells[0] | cells[1])
    ]


def _show_curves(screen: Screen, names: Sequence[str], reports: Sequence[PositionReport]) -> None:
    """What each is as a function of distance, and whether distance alone decides."""
    screen.heading("by distance, each beside its own largest value")
    for name, report in zip(names, reports, strict=True):
        if report.curve:
            screen.say((f"{name}: ", "name"), report.curve.title)
            screen.one_line(("  " + sparkline(report.curve.values, screen), "name"))


def _show_planes(screen: Screen, names: Sequence[str], reports: Sequence[PositionReport]) -> None:
    planes = [report.plane for report in reports]
    if not any(planes):
        return
    screen.heading("rows in their two main directions, from position 0 to the last one, n")
    width = max(20, (screen.width - 6) // 2)
    table = bare_table(*names, gap=4, header="dim")
    drawn = [
        scatter_lines(plane.points, screen, min(width, 4 * LINES), LINES) if plane else ["none"]
        for plane in planes
    ]
    for at in range(max(map(len, drawn))):
        table.add_row(*(lines[at] if at < len(lines) else "" for lines in drawn))
    screen.print(Padding(table, (0, 0, 0, 2), expand=False))
    shares = [f"{sum(plane.shares):.0%}" if plane else NONE for plane in planes]
    screen.say((f"of their variance: {shares[0]} and {shares[1]}", "aside"), indent=2)
