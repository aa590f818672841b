"""Read `tracks.toml`: ways through the challenges, by what they are about."""

from collections.abc import Iterable
from functools import cache

from attnlab.catalogue.categories import CATEGORIES
from attnlab.catalogue.challenge_schema import ID
from attnlab.catalogue.load import shipped_folder
from attnlab.catalogue.program_entries import ProgramEntry
from attnlab.catalogue.toml_rules import fields_of, line, listing, matching, one_of, read_document
from attnlab.catalogue.toml_rules import table as table_of
from attnlab.records import Challenge, record

NAMES = listing(matching(ID, "a name"))


@record
class Track:
    """A way through the challenges: those it names, and all of some categories, topics or kinds."""

    id: str
    title: str
    about: str
    names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()  # that are the first to fail

    def holds(self, unit: Challenge | ProgramEntry) -> bool:
        """Whether a challenge or program belongs to it."""
        if unit.name in self.names or unit.topic in self.topics or unit.kind in self.kinds:
            return True
        if isinstance(unit, ProgramEntry):
            return False
        return unit.category in self.categories or unit.expected[0] in self.checks

    def order(self, unit: Challenge | ProgramEntry) -> tuple[int, int, str]:
        """In the order of its names, then the easier ones first."""
        place = self.names.index(unit.name) if unit.name in self.names else len(self.names)
        return place, unit.level, unit.slug


_TRACK = fields_of(
    Track,
    {
        "id": matching(ID, "an id such as masks"),
        **dict.fromkeys(("title", "about"), line),
        **dict.fromkeys(("names", "topics", "kinds", "checks"), NAMES),
        "categories": listing(one_of(*CATEGORIES)),
    },
    required=("id", "title", "about"),
)
_RULE = table_of({"tracks": listing(_TRACK, least=1)}, required=("tracks",))


@cache
def read_tracks() -> tuple[Track, ...]:
    """The tracks in their order; raises `Unreadable`."""
    found: tuple[Track, ...] = read_document(shipped_folder() / "tracks.toml").read(_RULE)["tracks"]
    return found


def tracks_of(unit: Challenge | ProgramEntry) -> Iterable[Track]:
    """The tracks that a challenge or program belongs to."""
    return (track for track in read_tracks() if track.holds(unit))
