"""A class: how many pass, who fails what, and who says the same; also while it is graded."""

import csv
import io
from collections.abc import Callable, Sequence

from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from attnlab.records import plain, record
from attnlab.records.batch import Alike, BatchProgress, BatchSummary, Graded
from attnlab.render.grade import WORDS
from attnlab.render.json import Document, pick
from attnlab.render.screen import ASCII, Screen, bare_table, plural, truncate

REDRAWN = 4  # times a second
BAR = 24  # cells of the longest bar
MESSAGES = 4  # of one reason
COLUMNS = (
    "name", "outcome", "score", "check", "file", "line", "message", "seconds", "score_is_least",
)  # fmt: skip
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet would compute such a cell


@record
class BatchPage:
    summary: BatchSummary
    next: str = ""

    def show(self, screen: Screen) -> None:
        found = self.summary
        run, done = found.run, len(found.graded)
        passed = found.outcomes.get("passed", 0)
        mark, style = (
            (screen.marks.ok, "bold green") if passed == done else (screen.marks.bad, "bad")
        )
        screen.say((f"{mark} {passed} of {plural(done, 'submission')} passed", style))
        if done < run.total:
            screen.say((f"{run.total - done} not graded yet", "warn"), indent=2)
        if run.parts:
            screen.say((f"part {', '.join(run.parts)} of the class only", "warn"), indent=2)
        screen.say((run.challenge, "name"), f"  {found.file}", indent=2)
        _show_reasons(found, screen)
        _show_alike(found.alike, screen)
        screen.gap()
        limits = f"{run.limits.seconds:g} s and {run.limits.memory >> 20} MiB each"
        how = f"all with seed {run.seed}, {limits}, attnlab {run.attnlab}, torch {run.torch}"
        screen.say((how, "aside"))
        screen.do_next(self.next)

    def document(self) -> Document:
        found = self.summary
        return {
            **pick(found.run, "challenge", "total"),
            "outcome": "passed" if found.outcomes.get("passed") == found.run.total else "failed",
            "file": found.file,
            "graded": len(found.graded),
            "outcomes": found.outcomes,
            "failures": [
                {"check": reason.id, "names": list(reason.names), "messages": plain(reason.told)}
                for reason in found.reasons
            ],
            "similar": plain(found.alike),
            "submissions": [
                {
                    "name": one.name,
                    "check": _check(one),
                    "passed": one.passed,
                    "score_is_least": one.least,
                }
                | pick(one.verdict, "file", "outcome", "score", "message", "checks", "seconds")
                for one in found.graded
            ],
            "run": pick(found.run, "seed", "limits", "attnlab", "torch"),
            "next": self.next,
        }

    def table(self) -> str:
        """One row for each submission, as CSV."""
        file = io.StringIO()
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(COLUMNS)
        for one in self.summary.graded:
            verdict = one.verdict
            first = next((c for c in verdict.checks if c.line), None)
            place = (first.file, first.line) if first else (verdict.file, "")
            cells = (one.name, verdict.outcome, f"{verdict.score:.3f}", _check(one), *place)
            least = str(one.least).lower()
            more = (verdict.message, f"{verdict.seconds:.2f}", least)
            rows.writerow([_cell(c) for c in (*cells, *more)])
        return file.getvalue()


def _check(one: Graded) -> str:
    return one.first if one.verdict.outcome == "failed" else ""


def _cell(value: object) -> str:
    text = "" if value is None else str(value)
    return f"'{text}" if text.startswith(FORMULA) else text


def _show_reasons(found: BatchSummary, screen: Screen) -> None:
    """The histogram of first failures, each with the names under it."""
    if not found.reasons:
        return
    screen.heading("first failure")
    wide = max(len(WORDS.get(reason.id, reason.id)) for reason in found.reasons)
    most = len(found.reasons[0].names)
    for reason in found.reasons:
        bar = _bar(len(reason.names), most, screen)
        count = f"{len(reason.names):>{len(str(most))}}"
        word = f"  {WORDS.get(reason.id, reason.id):<{wide}}  {count} "
        screen.one_line((word, ""), (bar, "bad"))
        for told in reason.told[:MESSAGES]:
            screen.print(_names(told.names, screen, 4))
            screen.say((told.message.partition("\n")[0], "aside"), indent=6)
        if rest := reason.told[MESSAGES:]:
            names = [name for told in rest for name in told.names]
            screen.print(_names(names, screen, 4))
            screen.say((f"{plural(len(rest), 'other message')}: --csv has all", "aside"), indent=6)


def _names(names: Sequence[str], screen: Screen, indent: int) -> Text:
    """As many as have room on two lines, and how many more there are."""
    room = 2 * (min(screen.width, 120) - indent) - 16
    shown: list[str] = []
    for name in names:
        short = truncate(name, 40, screen.marks.dots)
        if shown and sum(map(len, shown)) + 2 * len(shown) + len(short) > room:
            break
        shown.append(short)
    more = f" and {len(names) - len(shown)} more" if len(shown) < len(names) else ""
    text = Text(", ".join(shown) + more)
    lines = text.wrap(screen, max(20, min(screen.width, 120) - indent))
    return Text("\n").join(Text(" " * indent) + line for line in lines)


def _bar(count: int, most: int, screen: Screen) -> str:
    mark = "#" if screen.marks is ASCII else "█"
    return mark * max(1, round(count / most * BAR))


def _show_alike(alike: Sequence[Alike], screen: Screen) -> None:
    if not alike:
        return
    screen.heading("the same but for names, comments and spaces")
    for group in alike:
        says = plural(len(group.names), "submission")
        if group.shipped:
            says += ", as the challenge ships it"
        elif group.solution:
            says += ", as its solution: of a small fix that is to be expected"
        screen.say(("  ", ""), (says, "" if group.shipped or group.solution else "warn"))
        screen.print(_names(group.names, screen, 4))


# ---------------------------------------------------------------- while it is graded


def progress_line(now: BatchProgress) -> str:
    """One line for each verdict, where nobody watches."""
    assert now.last is not None
    one = now.last
    at = f" at {one.first}" if one.verdict.outcome == "failed" else ""
    word = WORDS.get(one.verdict.outcome, one.verdict.outcome)
    return f"{now.done} of {now.total}: {one.name} {word}{at}{_pace(now)}"


def _pace(now: BatchProgress) -> str:
    if not now.rate or now.done == now.total:
        return ""
    return f" ({now.rate:.1f}/s, {format_left(now.left)} left)"


def format_left(seconds: float) -> str:
    """`40 s`, `3 min 20 s`, `2 h 5 min`."""
    whole = round(min(seconds, 1e7))
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


class LiveTable(Live):
    """The run as it stands, drawn again and again on a terminal."""

    def __init__(self, now: Callable[[], BatchProgress], screen: Screen) -> None:
        super().__init__(
            console=screen, refresh_per_second=REDRAWN, transient=True,
            get_renderable=lambda: _live_table(now(), screen),
        )  # fmt: skip


def _live_table(now: BatchProgress, screen: Screen) -> RenderableType:
    wide = min(screen.width - 2, 60)
    head = Text.assemble(
        (f"{now.done} of {now.total}", "title"), f"  {now.rate:.1f}/s",
        f"  {format_left(now.left)} left" if now.rate else "",
    )  # fmt: skip
    full = round(now.done / now.total * wide)
    stroke = "=" if screen.marks is ASCII else "━"
    bar = Text.assemble((stroke * full, "name"), (stroke * (wide - full), "aside"))
    counts = Text("  ").join(_count(name, n, screen) for name, n in now.outcomes.items())
    table = bare_table("first failure", "", " ", right=("",))
    most = max(now.reasons.values(), default=1)
    for reason, count in now.reasons.items():
        drawn = Text(_bar(count, most, screen), style="bad")
        table.add_row(WORDS.get(reason, reason), str(count), drawn)
    rows: list[RenderableType] = [head, bar, counts, *([table] if now.reasons else [])]
    busy = truncate("grading " + ", ".join(now.slots), wide, screen.marks.dots)
    return Group(*rows, Text(busy if now.slots else "", style="aside"))


def _count(outcome: str, count: int, screen: Screen) -> Text:
    mark, style = screen.look(outcome if outcome == "passed" else "failed")
    return Text(f"{mark} {count} {WORDS.get(outcome, outcome)}", style=style)
