"""Going on with a measurement that was ended."""

from __future__ import annotations

import pytest

from attnlab.errors import Refused
from attnlab.mutation_testing.measure import Strength
from attnlab.mutation_testing.resume import MeasuredBases, folder_digest, measurement_key

STRENGTH = Strength(slug="attention/too-sharp", right=4, trials=(), wrongs=())


def test_what_was_measured_is_known_to_the_next_run(tmp_path):
    """Each base is a line, and a line that was cut off costs that base alone."""
    path = tmp_path / "strength.jsonl"
    MeasuredBases(path).add("one", STRENGTH)
    with path.open("a") as file:
        file.write('{"key": "two", "stren')
    found = MeasuredBases(path)
    assert found.get("one") == STRENGTH
    assert found.get("two") is None
    found.add("three", STRENGTH)
    assert MeasuredBases(path).get("three") == STRENGTH


def test_without_a_file_nothing_is_kept(tmp_path):
    """And a file that cannot be written is one line."""
    MeasuredBases(None).add("one", STRENGTH)
    assert MeasuredBases(None).get("one") is None
    with pytest.raises(Refused, match="cannot be written"):
        MeasuredBases(tmp_path / "no" / "folder").add("one", STRENGTH)


def test_a_key_changes_with_the_files_of_the_base_and_the_settings(tmp_path):
    """An edited mutant, a new file, another share of the mutants: all are measured again."""
    (tmp_path / "solution.py").write_text("x = 1\n")
    before = measurement_key(str(tmp_path), [0], 100)
    assert before == measurement_key(str(tmp_path), [0], 100)
    assert before != measurement_key(str(tmp_path), [0, 1], 100)
    assert before != measurement_key(str(tmp_path), [0], 5)
    digest = folder_digest(str(tmp_path))
    (tmp_path / "notes.md").write_text("")
    assert folder_digest(str(tmp_path)) != digest
    assert measurement_key(str(tmp_path), [0], 100) != before
