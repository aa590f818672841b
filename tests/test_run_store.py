"""Going on with a run that was ended."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from attnlab.errors import Refused
from attnlab.mutation_testing.measure import Strength
from attnlab.records import Verdict
from attnlab.run_store import RunStore, folder_digest, result_key

STRENGTH = Strength(slug="attention/too-sharp", right=4, trials=(), wrongs=())
KILLED = """
import os, sys
from pathlib import Path
from attnlab.mutation_testing.measure import Strength
from attnlab.run_store import RunStore
store = RunStore(Path(sys.argv[1]))
store.add("one", "a", Strength(slug="a", right=1, trials=(), wrongs=()))
os.kill(os.getpid(), 9)
"""


def test_what_was_found_is_known_to_the_next_run(tmp_path):
    """A result comes back as it was kept; a newer one takes its place."""
    path = tmp_path / "run.sqlite"
    first = RunStore(path)
    first.add("one", STRENGTH.slug, STRENGTH)
    first.close()
    found = RunStore(path)
    assert found.get("one", Strength) == STRENGTH
    assert found.get("two", Strength) is None


def test_a_killed_run_loses_nothing_that_was_kept(tmp_path):
    """Every result is committed by itself."""
    path = tmp_path / "run.sqlite"
    subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    found = RunStore(path).get("one", Strength)
    assert found is not None
    assert found.slug == "a"


def test_threads_share_a_store(tmp_path):
    """Files are graded side by side."""
    store = RunStore(tmp_path / "run.sqlite")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: store.add(str(n), "x", STRENGTH), range(50)))
    assert all(store.get(str(n), Strength) == STRENGTH for n in range(50))


def test_a_result_of_another_version_is_none(tmp_path):
    """It is looked at again, not believed."""
    store = RunStore(tmp_path / "run.sqlite")
    store.add("one", "x", STRENGTH)
    assert store.get("one", Verdict) is None


def test_without_a_file_nothing_is_kept():
    """Most runs are of seconds."""
    store = RunStore(None)
    store.add("one", "x", STRENGTH)
    assert store.get("one", Strength) is None


def test_a_file_that_cannot_hold_results_is_refused(tmp_path):
    """In one line: a folder that is not there, a file of something else."""
    with pytest.raises(Refused, match="cannot be written"):
        RunStore(tmp_path / "no" / "folder")
    other = tmp_path / "notes.txt"
    other.write_text("not a data base, but long enough to be looked at\n" * 40)
    with pytest.raises(Refused, match="is no file of results"):
        RunStore(other)
    assert other.read_text().startswith("not a data base")


def test_a_file_that_is_locked_for_good_is_refused(tmp_path, monkeypatch):
    """Two runs may share a file, but none may hang on the other."""
    path = tmp_path / "run.sqlite"
    store = RunStore(path)
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda p, **k: connect(p, timeout=0.1, **k))
    hurried = RunStore(path)
    store._file.execute("BEGIN EXCLUSIVE")
    with pytest.raises(Refused, match="cannot be written"):
        hurried.add("one", "x", STRENGTH)
    store._file.execute("ROLLBACK")


def test_a_key_changes_with_the_files_of_the_base_and_the_settings(tmp_path):
    """An edited mutant, a new file, another share of the mutants: all are looked at again."""
    (tmp_path / "solution.py").write_text("x = 1\n")
    before = result_key(str(tmp_path), [0], 100)
    assert before == result_key(str(tmp_path), [0], 100)
    assert before != result_key(str(tmp_path), [0, 1], 100)
    assert before != result_key(str(tmp_path), [0], 5)
    digest = folder_digest(str(tmp_path))
    (tmp_path / "notes.md").write_text("")
    assert folder_digest(str(tmp_path)) != digest
    assert result_key(str(tmp_path), [0], 100) != before


def test_caches_of_python_do_not_change_a_key(tmp_path):
    """Python writes them while others run, first under a name that is gone a moment later."""
    (tmp_path / "solution.py").write_text("x = 1\n")
    digest = folder_digest(str(tmp_path))
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "solution.cpython-311.pyc.140243").write_text("half")
    (tmp_path / "__pycache__" / "gone.pyc.7").symlink_to(tmp_path / "nowhere")
    assert folder_digest(str(tmp_path)) == digest


def test_a_store_with_a_bound_keeps_the_newest(tmp_path):
    """The runs of a quiz are kept for speed alone: they do not fill a disk."""
    store = RunStore(tmp_path / "runs.db", most=3)
    for number in range(9):
        store.add(str(number), "x", number)
    assert [number for number in range(9) if store.has(str(number))] == [6, 7, 8]
