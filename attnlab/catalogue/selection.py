"""Which challenges and programs `attnlab list` is asked for."""

from collections.abc import Callable, Iterable

from attnlab.catalogue.program_entries import ProgramEntry
from attnlab.catalogue.tracks import read_tracks
from attnlab.errors import Refused
from attnlab.records import Challenge, ChallengeProgress, record
from attnlab.suggest import did_you_mean, either

Unit = Challenge | ProgramEntry
Row = tuple[Unit, ChallengeProgress]
KINDS = ("debug", "implement", "port", "cheaper", "program")
STATUSES = ("new", "started", "tried", "solved")
LEVELS = 5


@record
class Wanted:
    """What the command line asks for; "" is no restriction."""

    track: str = ""
    kind: str = ""
    topic: str = ""
    level: str = ""  # "2", or "2-4"
    tag: str = ""
    status: str = ""
    source: str = ""

    def select(self, rows: tuple[Row, ...]) -> tuple[Row, ...]:
        """The rows that fit, in the order of the track where there is one; raises `Refused`."""
        units = [unit for unit, _ in rows]
        _check("--kind", self.kind, KINDS)
        _check("--status", self.status, STATUSES)
        _check("--topic", self.topic, {unit.topic: 0 for unit in units})
        _check("--tag", self.tag, sorted({tag for unit in units for tag in _tags(unit)}))
        lowest, highest = self._levels()
        asked: list[tuple[str, Callable[[Unit], bool]]] = [
            (self.kind, lambda unit: unit.kind == self.kind),
            (self.topic, lambda unit: unit.topic == self.topic),
            (self.level, lambda unit: lowest <= unit.level <= highest),
            (self.tag, lambda unit: self.tag in _tags(unit)),
            (self.source, lambda unit: self.source.lower() in unit.source.lower()),
        ]
        found = [
            (unit, standing)
            for unit, standing in rows
            if all(fits(unit) for word, fits in asked if word)
            and self.status in ("", standing.status)
        ]
        if self.track:
            track = next((t for t in read_tracks() if t.id == self.track), None)
            if track is None:
                raise self._no_track(units)
            found = sorted((r for r in found if track.holds(r[0])), key=lambda r: track.order(r[0]))
        return tuple(found)

    def _levels(self) -> tuple[int, int]:
        low, _, high = self.level.partition("-")
        if not self.level:
            return 1, LEVELS
        if not all(n.isdecimal() and 1 <= int(n) <= LEVELS for n in (low, high or low)):
            raise Refused(f"--level {self.level}: levels are 1 to 5", "as in 2, or 2-4", "--level")
        return int(low), int(high or low)

    def _no_track(self, units: Iterable[Unit]) -> Refused:
        ids = [track.id for track in read_tracks()]
        if self.track in {name for unit in units for name in (unit.name, unit.slug)}:
            return Refused(f"{self.track} is no track", f"attnlab show {self.track} describes it")
        hint = did_you_mean(self.track, ids) or f"Tracks are {', '.join(ids)}."
        return Refused(f'there is no track "{self.track}"', hint)


def _tags(unit: Unit) -> tuple[str, ...]:
    return (unit.category,) if isinstance(unit, Challenge) and unit.category else ()


def _check(flag: str, said: str, known: Iterable[str]) -> None:
    if said and said not in known:
        hint = did_you_mean(said, known) or f"Write {either(known)}."
        raise Refused(f"{flag} {said}: there is no such {flag[2:]}", hint, flag)
