"""The catalogue: every challenge, and how far the user is with it."""

from itertools import groupby

from rich.table import Table
from rich.text import Text

from attnlab.catalogue.program_entries import ProgramEntry
from attnlab.catalogue.tracks import Track, read_tracks
from attnlab.records import Challenge, ChallengeProgress, record
from attnlab.render.json import Document, pick
from attnlab.render.screen import Marks, Screen, level_marks, plural, truncate

Row = tuple[Challenge | ProgramEntry, ChallengeProgress]
WIDE = 100
LEAST_TITLE = 12  # characters of it that say something
COMMANDS = {
    "attnlab list": "all challenges",
    "attnlab trace FILE": "every step of your own code, as in model.py:MyAttention",
    "attnlab --help": "all commands",
}


@record
class ListPage:
    rows: tuple[Row, ...]
    here: frozenset[str] = frozenset()  # slugs whose started file lies in this folder
    track: str = ""  # its id, where these are the challenges of one

    @property
    def under_way(self) -> list[Challenge | ProgramEntry]:
        """Those whose file lies here, neither solved nor given up."""
        mine = [(unit, standing) for unit, standing in self.rows if unit.slug in self.here]
        return [u for u, s in mine if s.status != "solved" and not s.solution_seen]

    def show(self, screen: Screen) -> None:
        name_width = max((len(c.name) for c, _ in self.rows), default=0)
        so_far = max((len(progress_label(s)) for _, s in self.rows), default=0)
        for heading, rows in groupby(self.rows, key=self._heading):
            screen.say((heading[0], "title"), heading[1])
            screen.print(_table(list(rows), screen, name_width, so_far))
            screen.gap()
        screen.say(self.count)
        screen.do_next(self.next)

    @property
    def next(self) -> str:
        """To work on the file that is under way in this folder, else to run the next one."""
        if self.under_way:
            return f"attnlab watch {self.under_way[0].name}"
        first = next_unsolved(self.rows)
        return f"attnlab run {first.name}" if first else ""

    def _heading(self, row: Row) -> tuple[str, str]:
        """What stands above a row: its track with what that is about, or else its topic."""
        track = next((t for t in read_tracks() if t.id == self.track), None)
        return (track.title, f"  {track.about}") if track else (row[0].topic, "")

    @property
    def count(self) -> str:
        """`3 of 8 challenges and 1 of 8 programs solved`."""
        told = []
        for noun, program in (("challenge", False), ("program", True)):
            of = [s.status == "solved" for c, s in self.rows if (c.kind == "program") == program]
            told += [f"{sum(of)} of {plural(len(of), noun)}"] if of else []
        return f"{' and '.join(told)} solved" if told else "none fits"

    def document(self) -> Document:
        return {"challenges": [_document(*row) for row in self.rows]}


@record
class TracksPage:
    """The tracks, a line each: how much of it is solved, and what is next."""

    listing: ListPage
    next: str = ""

    def show(self, screen: Screen) -> None:
        tracks = [(track, rows) for track, rows in self._tracks() if rows]
        following = [next_unsolved(rows) for _, rows in tracks]
        names = max((len(unit.name) for unit in following if unit), default=0)
        wide = screen.width >= WIDE
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
        for width in (12, 8, screen.width - 26 - (names + 10 if wide else 0)):
            table.add_column(width=max(width, 8), no_wrap=True)
        for (track, rows), unit in zip(tracks, following, strict=True):
            solved = sum(standing.status == "solved" for _, standing in rows)
            cells = [
                Text(track.id, style="name"),
                Text(f"{solved} of {len(rows)}", style="" if unit else "ok"),
                Text(track.title),
            ]
            if wide:
                cells.append(Text(f"next {unit.name}" if unit else "", style="aside"))
            table.add_row(*cells)
        screen.print(table)
        screen.gap()
        screen.say(self.listing.count)
        screen.gap()
        screen.hang(("attnlab list TRACK  ", "name"), "the challenges of a track")
        screen.hang(("attnlab list --all  ", "name"), "all of them")
        screen.do_next(self.next)

    def _tracks(self) -> list[tuple[Track, tuple[Row, ...]]]:
        rows = self.listing.rows
        return [
            (
                track,
                tuple(
                    sorted((r for r in rows if track.holds(r[0])), key=lambda r: track.order(r[0]))
                ),
            )
            for track in read_tracks()
        ]

    def document(self) -> Document:
        tracks = [
            pick(track, "id", "title", "about") | {"challenges": [unit.slug for unit, _ in rows]}
            for track, rows in self._tracks()
        ]
        return {**self.listing.document(), "tracks": tracks}


@record
class OverviewPage:
    """Where the user is and what is next, in a few lines."""

    listing: ListPage
    interview: str = ""  # the one that is going on, with its clock
    next: str = ""
    plan: str = ""  # the day of the one that is not over: "day 1 of 2"

    def show(self, screen: Screen) -> None:
        screen.say(("attnlab", "title"), f"  {self.listing.count}")
        if self.interview:
            screen.say((self.interview, "warn"))
        if self.plan:
            screen.say(("plan", "title"), f"  {self.plan}")
        for challenge, standing in self.listing.rows:
            if challenge.slug in self.listing.here and standing.status != "solved":
                end = "/" if isinstance(challenge, ProgramEntry) else ".py"
                file = (f"./{challenge.name}{end}", "name")
                screen.say(file, f"  {progress_label(standing)}  {challenge.title}", indent=2)
        screen.gap()
        for words, purpose in COMMANDS.items():
            screen.hang((f"{words:<20}", "name"), purpose)
        screen.do_next(self.next)

    def document(self) -> Document:
        return {**self.listing.document(), "interview": self.interview, "next": self.next}


def _table(rows: list[Row], screen: Screen, name_width: int, so_far: int) -> Table:
    """Nothing is wrapped: the title is cropped to what is left, the kind needs a wide screen; a
    narrow one has names and how far the user is."""
    marks = screen.marks
    stages = all(isinstance(challenge, ProgramEntry) for challenge, _ in rows)
    widths = [3, name_width, 5, so_far] + [8] * stages + [9] * (screen.width >= WIDE)
    title = screen.width - sum(widths) - 2 * len(widths)
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    narrow = title < LEAST_TITLE
    for width in [1, name_width, so_far] if narrow else [*widths, title]:
        table.add_column(width=width, no_wrap=True)
    for challenge, standing in rows:
        mark, style = _mark(standing, marks)
        so_far_cell = Text(progress_label(standing), style=style)
        if narrow:
            table.add_row(Text(mark, style=style), Text(challenge.name, style="name"), so_far_cell)
            continue
        cells = [
            Text(f"  {mark}", style=style),
            Text(challenge.name, style="name"),
            Text(level_marks(marks, challenge.level)),
            so_far_cell,
        ]
        if stages and isinstance(challenge, ProgramEntry):
            cells += [Text(plural(challenge.stages, "stage") if challenge.stages else "")]
        cells += [Text(challenge.kind)] if screen.width >= WIDE else []
        table.add_row(*cells, Text(truncate(challenge.title, title, marks.dots)))
    return table


def _mark(standing: ChallengeProgress, marks: Marks) -> tuple[str, str]:
    looks = {
        "solved": (marks.ok, "ok"),
        "tried": (marks.full, "warn"),
        "started": (marks.empty, "warn"),
        "new": (" ", ""),
    }
    if standing.status == "solved" and standing.peeked:
        return marks.full, "aside"  # right, with the solution read first
    return looks[standing.status]


def progress_label(standing: ChallengeProgress) -> str:
    """How far, in a word or two: "solved", "solution seen", "best 0.62", "started"."""
    if standing.status == "solved" and standing.peeked:
        return "solution seen"
    return f"best {standing.best:.2f}" if standing.status == "tried" else standing.status


def next_unsolved(rows: tuple[Row, ...]) -> Challenge | ProgramEntry | None:
    """The first one that was tried, else that was started, else that is new; programs, which take
    an hour, come last. None without any."""
    order = ("tried", "started", "new").index
    open_rows = [row for row in rows if row[1].status != "solved"]
    track = read_tracks()[0]  # of what is new, where most begin

    def place(row: Row) -> tuple[bool, int, bool, tuple[int, int, str]]:
        first_hour = row[0].name in track.names
        return (
            isinstance(row[0], ProgramEntry),
            order(row[1].status),
            not first_hour,
            track.order(row[0]) if first_hour else (0, 0, ""),
        )

    first = min(open_rows, key=place, default=None)
    return first[0] if first else None


def _document(challenge: Challenge | ProgramEntry, standing: ChallengeProgress) -> Document:
    more = ("bugs", "stages") if isinstance(challenge, ProgramEntry) else ()
    done = ("status", "tries", "best", "hints", "revealed", "solution_seen", "peeked")
    what = pick(challenge, *more, "slug", "title", "kind", "topic", "level")
    return what | pick(standing, *done)
