"""Which challenges `attnlab list` shows, and the tracks they belong to."""

import pytest

from attnlab.catalogue.load import load
from attnlab.catalogue.selection import Wanted
from attnlab.catalogue.tracks import read_tracks, tracks_of
from attnlab.errors import Refused
from attnlab.records import ChallengeProgress

CATALOGUE = load()
UNITS = (*CATALOGUE.challenges, *CATALOGUE.programs)
ROWS = tuple((unit, ChallengeProgress()) for unit in UNITS)


def chosen(**wanted):
    return [unit for unit, _ in Wanted(**wanted).select(ROWS)]


def test_every_challenge_and_program_is_in_a_track():
    """What is in none is found by nobody."""
    assert [unit.slug for unit in UNITS if not list(tracks_of(unit))] == []


def test_every_name_of_a_track_exists():
    """A challenge that was renamed would silently be missing."""
    names = {unit.name for unit in UNITS}
    assert [name for track in read_tracks() for name in track.names if name not in names] == []


def test_nothing_asked_is_everything():
    """In the order of the catalogue."""
    assert chosen() == list(UNITS)


def test_each_restriction_holds_and_all_do():
    """Kind, topic, tag, source, levels: those that fit, and no other."""
    assert {unit.kind for unit in chosen(kind="program")} == {"program"}
    assert {unit.topic for unit in chosen(topic="position")} == {"position"}
    assert {unit.category for unit in chosen(tag="mask")} == {"mask"}
    assert {unit.level for unit in chosen(level="2-3")} == {2, 3}
    assert all("HUGGING" in unit.source.upper() for unit in chosen(source="hugging"))
    both = chosen(topic="attention", level="1")
    assert both == [u for u in UNITS if u.topic == "attention" and u.level == 1]
    assert chosen(status="new") == list(UNITS)
    assert chosen(status="solved") == []


def test_a_track_has_its_own_order():
    """That of its names; what it holds by kind comes after, the easier ones first."""
    first = read_tracks()[0]
    assert [unit.name for unit in chosen(track=first.id)] == list(first.names)
    levels = [unit.level for unit in chosen(track="masks")]
    assert levels == sorted(levels)


@pytest.mark.parametrize(
    ("wanted", "says", "hint"),
    [
        ({"kind": "programs"}, "--kind programs: there is no such kind", "program"),
        ({"level": "7"}, "levels are 1 to 5", "2-4"),
        ({"level": "a-b"}, "levels are 1 to 5", "2-4"),
        ({"status": "done"}, "there is no such status", "solved"),
        ({"tag": "masks"}, "there is no such tag", "mask"),
        ({"topic": "embedding"}, "there is no such topic", "attention"),
        ({"track": "mask"}, 'there is no track "mask"', "masks"),
        ({"track": "too-sharp"}, "too-sharp is no track", "attnlab show too-sharp"),
    ],
)
def test_a_word_that_is_not_known_is_refused(wanted, says, hint):
    """With the words that are."""
    with pytest.raises(Refused) as caught:
        chosen(**wanted)
    assert says in caught.value.message
    assert hint in caught.value.hint
