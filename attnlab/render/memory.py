"""What a person's answers show: figures, what is due again, a plan of some days."""

from collections import Counter
from collections.abc import Sequence

from rich.text import Text

from attnlab.records import plain, record
from attnlab.records.practice import QUESTION, CategoryStats, DueCard, PlanDay, Stats
from attnlab.render.json import Document, pick
from attnlab.render.screen import Screen, bare_table, plural, ticks

DAY = 86400.0
SHORT, LONG = 60.0, 90.0  # seconds that are told as such; minutes
REASON = 17  # cells that a reason takes at least beside its command and minutes
BEGIN = "nothing was answered yet: attnlab next starts a challenge, attnlab quiz asks a question"


@record
class StatsPage:
    stats: Stats
    next: str = ""

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
            "  ",
            "right: answered or solved at the first try; of a bug in a round: fixed before a hint"
            " or a triage named it",
        )
        _show_rows("by kind of bug", found.categories, screen)
        _show_rows("by kind of question", found.kinds, screen)
        if weak := found.weakest:
            screen.gap()
            lately = f"{sum(weak.lately)} of {len(weak.lately)} right lately"
            screen.say(f"the weakest kind of bug is {weak.name}: {lately}")
        screen.do_next(self.next)

    def document(self) -> Document:
        weakest = self.stats.weakest.name if self.stats.weakest else ""
        known = {"outcome": "ok", **pick(self.stats, "answers", "right"), "weakest": weakest}
        return known | _documents(self.stats) | pick(self, "next")


def _documents(stats: Stats) -> Document:
    return {
        name: [plain(row) | {"trend": row.trend} for row in rows]
        for name, rows in (("categories", stats.categories), ("kinds", stats.kinds))
    }


def _show_rows(title: str, rows: Sequence[CategoryStats], screen: Screen) -> None:
    trends = ["trend"] * any(row.trend for row in rows)
    table = bare_table(title, "answers", "right", "median", "lately", *trends)
    for row in rows:
        median = _duration(row.median_seconds) if row.median_seconds else ""
        cells = (row.name, str(row.answers), f"{row.right / row.answers:.0%}", median)
        table.add_row(*cells, ticks(row.lately, screen.marks), *[row.trend] * len(trends))
    screen.gap()
    screen.print(table)


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < SHORT else f"{seconds / 60:.1f} min"


def _length(minutes: float) -> str:
    return f"{minutes:.0f} minutes" if minutes <= LONG else f"{minutes / 60:.1f} hours"


def _show_steps(steps: Sequence[tuple[float, str, str]], screen: Screen) -> None:
    """Commands to type, so none is cut: the reasons wrap, and where that is too little, they do."""
    table = bare_table("min", "command", "why", right=("min",))
    wide = max(len(step[1]) for step in steps)
    table.columns[1].overflow = table.columns[2].overflow = "fold"
    table.columns[1].no_wrap, table.columns[2].no_wrap = wide + REASON <= screen.width, False
    for minutes, command, why in steps:
        table.add_row(f"{minutes:.0f}", Text(command, "name"), why)
    screen.print(table)


@record
class ReviewPage:
    """All that is due: what fits into the time, what takes longer alone, and the other questions by
    their number."""

    now: tuple[DueCard, ...]
    later: tuple[DueCard, ...] = ()
    more: int = 0
    answers: int = 0
    clock: float = 0.0  # seconds since 1970
    limit: float = 10.0  # minutes that were asked for
    next: str = ""  # where nothing is due

    def show(self, screen: Screen) -> None:
        if not self.due:
            screen.say("nothing is due now" if self.answers else BEGIN)
            screen.do_next(self.next * bool(self.answers))
            return
        minutes = sum(card.minutes for card in self.now)
        limit = plural(int(self.limit), "minute")
        none = "" if self.now else f", none of which fits into {limit}"
        screen.say(("review  ", "title"), f"{self._counted()} due{none}")
        now = f"now, about {plural(round(minutes), 'minute')}"
        for cards, title in ((self.now, now), (self.later, "with more time")):
            if cards:
                screen.heading(title)
                _show_steps([(c.minutes, c.command, self._why(c)) for c in cards], screen)
        wait = f"; attnlab review then has {self.more} more" * bool(self.more)
        screen.do_next((*self.now, *self.later)[0].command + wait)

    @property
    def due(self) -> int:
        return self.more + sum(card.count for card in (*self.now, *self.later))

    def _counted(self) -> str:
        """`3 questions, 1 challenge and 1 interview`."""
        counts = Counter({QUESTION: self.more})
        for card in (*self.now, *self.later):
            counts[card.noun] += card.count
        *most, last = [plural(count, noun) for noun, count in counts.items() if count]
        return f"{', '.join(most)} and {last}" if most else last

    def _why(self, card: DueCard) -> str:
        """`mask: wrong last time, due 2 days ago`; without a kind of bug where that would tell."""
        days = int((self.clock - card.due) / DAY)
        since = f"due {plural(days, 'day')} ago" if days else "due today"
        about = f"{card.category}: " * bool(card.category)
        return f"{about}{card.last} last time, {since}"

    def document(self) -> Document:
        cards = {name: plain(getattr(self, name)) for name in ("now", "later")}
        return {"outcome": "ok", **pick(self, "due", "answers", "more"), **cards}


@record
class PlanPage:
    days: tuple[PlanDay, ...]
    answers: int
    today: int = 0  # of them
    done: float = 0.0  # minutes that was practised on this day
    next: str = ""

    def show(self, screen: Screen) -> None:
        known = f"from {plural(self.answers, 'answer')}" if self.answers else "nothing answered yet"
        screen.say(("plan  ", "title"), f"{plural(len(self.days), 'day')}, {known}")
        if self.today:
            about = f": about {_duration(60 * self.done)} of practice" * (60 * self.done >= 1)
            screen.say(f"today {plural(self.today, 'answer')}{about}", indent=2)
        for day in (day for day in self.days if day.steps):
            screen.gap()
            left = " left" * (day.number == 1 and bool(self.today))
            screen.say((f"day {day.number}  ", "title"), _length(day.minutes) + left)
            _show_steps([(step.minutes, step.command, step.why) for step in day.steps], screen)
        if not self.days[0].steps:
            screen.gap()
            screen.say((f"{screen.marks.ok} ", "ok"), "today is done")
        again = "; tomorrow attnlab plan adapts to your results" * (len(self.days) > 1)
        screen.do_next(f"{self.next}{again}")

    def document(self) -> Document:
        return {"outcome": "ok", **pick(self, "answers", "days", "today", "done", "next")}


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
