"""Which bases are measured, how much of them, and which were measured before."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from attnlab.catalogue.load import load
from attnlab.mutation_testing import measure_all
from attnlab.mutation_testing.measure import Strength
from attnlab.mutation_testing.measure_all import Measurement
from attnlab.run_store import RunStore, folder_digest


@pytest.fixture
def asked(monkeypatch):
    """What was measured, in order: the slug, and the share of its mutants."""
    found = []

    class FakeGrader:
        def __init__(self, base, runner, seeds):
            self.slug = base.slug

        def measure(self, pool, percent):
            found.append((self.slug, percent))
            return Strength(slug=self.slug, right=1, trials=(), wrongs=())

    monkeypatch.setattr(measure_all, "FileVersionGrader", FakeGrader)
    monkeypatch.setattr(measure_all, "ProgramVersionGrader", FakeGrader)
    return found


def run(tmp_path, **settings):
    catalogue = load()
    with ThreadPoolExecutor(1) as pool:
        measurement = Measurement(
            runner=None,
            pool=pool,
            seeds=range(1),
            measured=RunStore(tmp_path / "measured.sqlite"),
            **settings,
        )
        return list(measurement.strengths(catalogue.challenges[:1], catalogue.programs[:1]))


def test_a_second_run_measures_nothing_again(tmp_path, asked):
    """What was ended goes on with the base that was not done."""
    first = run(tmp_path)
    assert len(asked) == len(first) == 2
    assert run(tmp_path) == first
    assert len(asked) == 2


def test_a_program_is_sampled_where_the_table_lists_it_as_it_is(tmp_path, asked):
    """Changed ones, and those that are new, are measured wholly."""
    entry = load().programs[0]
    run(tmp_path, percent=5, table="programs/another 0123456789ab")
    assert [share for _, share in asked] == [100, 100]
    digest = folder_digest(entry.folder)
    (_, program) = run(tmp_path, percent=5, table=f"{entry.slug} {digest}")
    assert asked[2:] == [(entry.slug, 5)]
    assert not program.digest
