"""What a person's answers show: figures, what is due again, a plan of some days."""

from collections.abc import Sequence

from attnlab.records import plain, record
from attnlab.records.practice import CategoryStats, DueCard, PlanDay, Stats
from attnlab.render.json import Document, pick
from attnlab.render.screen import Screen, bare_table, plural

DAY = 86400.0
SHORT, LONG = 60.0, 90.0  # seconds that are told as such; minutes
REASON = 17  # cells that a reason takes at least beside its command and minutes
BEGIN = "nothing was answered yet: attnlab next starts a challenge, attnlab quiz asks a question"


@record
class StatsPage:
    stats: Stats

    def show(self, screen: Screen) -> None:
        found = self.stats
        if not found.answers:
            screen.say(BEGIN)
            return
        share = found.right / found.answers
        screen.say(
            ("stats  ", "title"),
            f"{plural(found.answers, 'answer')}, {share:.0%} right without help",
        )
        screen.hang(
            "  ", "a bug of a round: fixed, no hint or triage named it; all else: first try"
        )
        _show_rows("by kind of bug", found.categories, screen)
        _show_rows("by kind of question", found.kinds, screen)
        if weak := found.weakest:
            why = f"{weak.name} is weakest, {sum(weak.lately)} of {len(weak.lately)} right lately"
            screen.do_next(f"of bugs, {why}; attnlab review says what is due")

    def document(self) -> Document:
        return {"outcome": "ok", **pick(self.stats, "answers", "right"), **_documents(self.stats)}


def _documents(stats: Stats) -> Document:
    return {
        name: [plain(row) | {"trend": row.trend} for row in rows]
        for name, rows in (("categories", stats.categories), ("kinds", stats.kinds))
    }


def _show_rows(title: str, rows: Sequence[CategoryStats], screen: Screen) -> None:
    marks = screen.marks
    table = bare_table(title, "answers", "right", "median", "lately", "trend")
    for row in rows:
        lately = " ".join(marks.ok if right else marks.bad for right in row.lately)
        median = _duration(row.median_seconds) if row.median_seconds else ""
        share = f"{row.right / row.answers:.0%}"
        table.add_row(row.name, str(row.answers), share, median, lately, row.trend)
    screen.gap()
    screen.print(table)


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < SHORT else f"{seconds / 60:.1f} min"


def _length(minutes: float) -> str:
    return f"{minutes:.0f} minutes" if minutes <= LONG else f"{minutes / 60:.1f} hours"


def _show_steps(steps: Sequence[tuple[float, str, str]], screen: Screen) -> None:
    """Commands to type, so none is cut: the reasons wrap, and where that is too little, they do."""
    table, wide = bare_table("min", "command", "why"), max(len(step[1]) for step in steps)
    table.columns[1].overflow = table.columns[2].overflow = "fold"
    table.columns[1].no_wrap, table.columns[2].no_wrap = wide + REASON <= screen.width, False
    for minutes, command, why in steps:
        table.add_row(f"{minutes:.0f}", command, why)
    screen.print(table)


@record
class ReviewPage:
    now: tuple[DueCard, ...]  # what fits into the time
    due: int
    answers: int
    clock: float  # seconds since 1970
    limit: float  # minutes that were asked for

    def show(self, screen: Screen) -> None:
        if not self.now:
            screen.say(BEGIN if not self.answers else "nothing is due now")
            if self.answers:
                screen.do_next("attnlab plan goes on with what is new")
            return
        minutes = sum(card.minutes for card in self.now)
        left = self.due - sum(card.count for card in self.now)
        screen.say(
            ("review  ", "title"),
            f"{plural(self.due, 'question')} due; ",
            f"none fits into {self.limit:.0f} minutes, the shortest takes about {minutes:.0f}"
            if minutes > self.limit
            else f"these take about {minutes:.0f} minutes"
            + f", and {left} more take longer than is left" * bool(left),
        )
        screen.gap()
        _show_steps([(card.minutes, card.command, self._why(card)) for card in self.now], screen)
        screen.do_next(self.now[0].command)

    def _why(self, card: DueCard) -> str:
        """`mask: wrong last time, due 2 days ago`; without a kind of bug where that would tell."""
        days = int((self.clock - card.due) / DAY)
        since = f"due {plural(days, 'day')} ago" if days else "due today"
        about = f"{card.category}: " * bool(card.category)
        return f"{about}{card.last} last time, {since}"

    def document(self) -> Document:
        return {"outcome": "ok", **pick(self, "due", "answers"), "now": plain(self.now)}


@record
class PlanPage:
    days: tuple[PlanDay, ...]
    answers: int
    today: int = 0  # of them
    done: float = 0.0  # minutes that was practised on this day

    def show(self, screen: Screen) -> None:
        known = f"from {plural(self.answers, 'answer')}" if self.answers else "nothing answered yet"
        screen.say(("plan  ", "title"), f"{plural(len(self.days), 'day')}, {known}")
        if self.today:
            about = f"about {_duration(60 * self.done)} of practice"
            screen.say(f"today {plural(self.today, 'answer')}: {about}", indent=2)
        for day in (day for day in self.days if day.steps):
            screen.gap()
            screen.say((f"day {day.number}  ", "title"), _length(day.minutes))
            _show_steps([(step.minutes, step.command, step.why) for step in day.steps], screen)
        command = self.days[0].steps[0].command if self.days[0].steps else "today is done"
        again = "; tomorrow attnlab plan adapts to your results" * (len(self.days) > 1)
        screen.do_next(f"{command}{again}")

    def document(self) -> Document:
        return {"outcome": "ok", **pick(self, "answers", "days", "today", "done")}


@record
class KeptPage:
    file: str
    count: int
    imported: bool

    def show(self, screen: Screen) -> None:
        done = "added from" if self.imported else "written to"
        screen.say(
            (f"{screen.marks.ok} ", "ok"), f"{self.count} events and grades {done} ", self.file
        )

    def document(self) -> Document:
        return {"outcome": "ok", **pick(self, "file", "count", "imported")}
