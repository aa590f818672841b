"""Progress: what is counted, and that no bad folder or damaged file stops the practice."""

import os
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from attnlab import progress
from attnlab.progress import FILE, Progress
from attnlab.records import ChallengeProgress

SLUG = "attention/too-sharp"


@contextmanager
def opened(folder):
    with Progress.open(folder) as found:
        yield found


@pytest.fixture
def kept(tmp_path):
    with opened(tmp_path) as found:
        assert found.warning == ""
        yield found


def test_an_untouched_challenge_is_new(kept):
    """Nothing is listed that nobody began."""
    assert kept.challenge_progress(SLUG) == ChallengeProgress()
    assert kept.all_progress() == {}


def test_each_step_shows_in_the_standing(kept):
    """Starting, hints, reveals, grades and the solution are all kept apart."""
    kept.mark_started(SLUG)
    assert kept.challenge_progress(SLUG) == ChallengeProgress(status="started")
    assert [kept.add_hint(SLUG), kept.add_hint(SLUG)] == [1, 2]
    kept.mark_revealed(SLUG)
    kept.add_grade(SLUG, "failed", 0.5, "too-sharp.py")
    assert kept.challenge_progress(SLUG) == ChallengeProgress(
        status="tried", hints=2, revealed=True, tries=1, best=0.5
    )
    kept.add_grade(SLUG, "passed", 1.0, "too-sharp.py")
    kept.mark_solution_seen(SLUG)
    assert kept.challenge_progress(SLUG) == ChallengeProgress(
        status="solved", hints=2, revealed=True, tries=2, best=1.0, solution_seen=True
    )


def test_a_file_may_be_called_anything(kept):
    """Names are bytes, and need not be text."""
    kept.add_grade(SLUG, "passed", 1.0, os.fsdecode(b"b\xffad.py"))
    assert kept.challenge_progress(SLUG).tries == 1


def test_a_later_failure_undoes_nothing(kept):
    """Solved stays solved, and the best score stays."""
    kept.add_grade(SLUG, "passed", 1.0, "a.py")
    kept.add_grade(SLUG, "crashed", 0.1, "b.py")
    assert kept.challenge_progress(SLUG) == ChallengeProgress(status="solved", tries=2, best=1.0)


@pytest.mark.parametrize("step", ["add_hint", "mark_revealed", "mark_solution_seen"])
def test_any_first_step_starts_a_challenge(kept, step):
    """A hint taken without `attnlab start` counts as begun."""
    getattr(kept, step)(SLUG)
    assert kept.challenge_progress(SLUG).status == "started"


def test_challenges_are_kept_apart(kept):
    """A hint for one is no hint for another."""
    kept.add_hint(SLUG)
    kept.add_grade("position/b", "failed", 0.0, "b.py")
    assert kept.all_progress() == {
        SLUG: ChallengeProgress(status="started", hints=1),
        "position/b": ChallengeProgress(status="tried", tries=1),
    }


def test_progress_outlives_the_command(tmp_path):
    """What one command wrote the next one reads."""
    with opened(tmp_path / "new" / "folder") as first:
        first.add_hint(SLUG)
    with opened(tmp_path / "new" / "folder") as second:
        assert second.add_hint(SLUG) == 2


def test_the_database_is_set_up_as_promised(kept):
    """WAL with synchronous=NORMAL, and the schema's version in user_version."""
    ask = lambda name: kept._db.execute(f"PRAGMA {name}").fetchone()[0]  # noqa: E731
    assert (ask("journal_mode"), ask("synchronous"), ask("user_version")) == ("wal", 1, 4)


def test_attnlab_home_names_the_folder(tmp_path, monkeypatch):
    """ATTNLAB_HOME comes before the system's place, and may be relative."""
    monkeypatch.setenv("ATTNLAB_HOME", "here")
    monkeypatch.chdir(tmp_path)
    with opened(None) as found:
        assert found.path == tmp_path / "here" / FILE


def test_the_system_says_where_else(tmp_path, monkeypatch):
    """Without ATTNLAB_HOME progress lies where the system keeps a user's data: what the variable
    says counts where it is a whole path, else the usual folder of the home."""
    monkeypatch.delenv("ATTNLAB_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr("attnlab.files.DATA_FOLDER", "~/.local/share")
    for said, place in (("data", "home/.local/share"), (str(tmp_path / "data"), "data")):
        monkeypatch.setenv("XDG_DATA_HOME", said)
        monkeypatch.setattr("attnlab.files.DATA_VARIABLE", "XDG_DATA_HOME")
        with opened(None) as found:
            assert found.path == tmp_path / place / "attnlab" / FILE


# ---------------------------------------------------------------- bad places


def test_without_a_home_progress_lives_in_memory(tmp_path, monkeypatch):
    """A container user without a home can practise, and no folder named ~ appears."""
    monkeypatch.delenv("ATTNLAB_HOME", raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setattr("attnlab.files.DATA_FOLDER", "~a-user-that-is-not-there/share")
    monkeypatch.chdir(tmp_path)
    with opened(None) as found:
        assert found.warning.startswith("progress is not saved: this user has no home folder")
        assert found.add_hint(SLUG) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_place_of_the_folder_is_told(tmp_path):
    """A wrong ATTNLAB_HOME costs the saving, not the practice."""
    place = tmp_path / "file"
    place.write_text("")
    with opened(place) as found:
        assert str(place) in found.warning
        assert "set ATTNLAB_HOME" in found.warning
        found.add_grade(SLUG, "passed", 1.0, "a.py")
        assert found.challenge_progress(SLUG).status == "solved"


def test_a_folder_in_place_of_the_file_is_told(tmp_path):
    """SQLite's own words come with the path."""
    (tmp_path / FILE).mkdir()
    with opened(tmp_path) as found:
        assert str(tmp_path / FILE) in found.warning
        assert found.add_hint(SLUG) == 1


@contextmanager
def nobody():
    """Runs as a user who may not write everywhere: root may."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_read_only_folder_still_shows_what_was_done():
    """Old progress is read, new progress lives for the command, and the file stays as it was."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with opened(folder) as first:
            first.add_hint(SLUG)
        before = (folder / FILE).read_bytes()
        (folder / FILE).chmod(0o444)
        folder.chmod(0o555)
        try:
            with nobody(), opened(folder) as second:
                second.warning.index("progress is not saved")
                assert second.add_hint(SLUG) == 2
        finally:
            folder.chmod(0o755)
        assert (folder / FILE).read_bytes() == before


def test_a_disk_that_fails_later_is_told_too(tmp_path):
    """A grade is shown even when it cannot be written down."""
    with opened(tmp_path) as found:
        found.add_hint(SLUG)
        found._db.execute("PRAGMA query_only = 1")  # every write fails from here on
        assert found.add_hint(SLUG) == 2
        assert "progress is not saved" in found.warning
        assert found.challenge_progress(SLUG).hints == 2


# ---------------------------------------------------------------- damaged files


def damage_header(path):
    path.write_bytes(b"not a database at all, just text" * 40)


def damage_pages(path):
    data = path.read_bytes()
    path.write_bytes(data[:4096] + os.urandom(len(data) - 4096))


def foreign(path):
    with sqlite3.connect(path) as db:
        db.execute("DROP TABLE grade")
    db.close()


@pytest.mark.parametrize("damage", [damage_header, damage_pages, foreign])
def test_a_damaged_file_is_set_aside(tmp_path, damage):
    """It is kept under another name, the user is told, and practice starts afresh."""
    with opened(tmp_path) as found:
        found.add_hint(SLUG)
    damage(tmp_path / FILE)
    content = (tmp_path / FILE).read_bytes()
    with opened(tmp_path) as found:
        assert "was damaged" in found.warning
        assert "progress.broken-1.db" in found.warning
        assert found.add_hint(SLUG) == 1
    assert (tmp_path / "progress.broken-1.db").read_bytes() == content
    with opened(tmp_path) as found:
        assert (found.warning, found.challenge_progress(SLUG).hints) == ("", 1)


def test_an_older_damaged_file_is_not_overwritten(tmp_path):
    """Each damaged file gets the next free number."""
    for number in (1, 2):
        damage_header(tmp_path / FILE)
        with opened(tmp_path) as found:
            assert f"progress.broken-{number}.db" in found.warning
    assert (tmp_path / "progress.broken-1.db").exists()


def test_an_empty_file_is_a_fresh_start(tmp_path):
    """A crash before the first write leaves no puzzle."""
    (tmp_path / FILE).write_bytes(b"")
    with opened(tmp_path) as found:
        assert (found.warning, found.add_hint(SLUG)) == ("", 1)


def test_the_file_of_a_newer_attnlab_is_left_alone(tmp_path):
    """A downgrade neither damages nor sets aside what it cannot read."""
    with opened(tmp_path) as found:
        found._db.execute("PRAGMA user_version = 99")
    with opened(tmp_path) as found:
        assert "a newer attnlab wrote this file" in found.warning
        found.add_hint(SLUG)
    assert [p.name for p in tmp_path.glob("*.db")] == [FILE]


# ---------------------------------------------------------------- two at once

MANY = """
import sys
from pathlib import Path
from attnlab.progress import Progress
for _ in range(15):
    with Progress.open(Path(sys.argv[1])) as found:
        found.add_hint("a/b")
        found.add_grade("a/b", "failed", 0.5, "x.py")
        assert not found.warning, found.warning
"""


def test_several_commands_at_once_lose_nothing(tmp_path):
    """Every hint and every grade of three processes is counted, from a fresh file on."""
    runs = [subprocess.Popen([sys.executable, "-c", MANY, tmp_path]) for _ in range(3)]
    assert [run.wait(timeout=60) for run in runs] == [0, 0, 0]
    with opened(tmp_path) as found:
        assert found.challenge_progress("a/b") == ChallengeProgress(
            status="tried", hints=45, tries=45, best=0.5
        )


def test_a_file_locked_for_long_is_told(tmp_path, monkeypatch):
    """Waiting has an end: the command goes on without saving."""
    monkeypatch.setattr(progress, "WAIT", 0.05)
    with opened(tmp_path) as found:
        other = sqlite3.connect(tmp_path / FILE, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        assert found.add_hint(SLUG) == 1
        assert "locked" in found.warning
        other.close()
