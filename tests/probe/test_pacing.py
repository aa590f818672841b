"""Right code that goes through pairs of positions one by one gets calls that it can answer."""

import random
from types import SimpleNamespace

import pytest
from fakes import check, grade
from modules import PLAIN

from attnlab.probe import probe as probe_module
from attnlab.probe.inputs.sizes import rounds
from attnlab.probe.pacing import PILOT, QUICK, pairs


def asked(monkeypatch, *took):
    """What a probe says of 64 positions where a call takes so many seconds by the clock."""
    ticks = iter(t for seconds in took for t in (0.0, seconds))
    monkeypatch.setattr(probe_module, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
    found = []
    grade(
        monkeypatch, check("a", lambda p: found.append((p.sizes, p.expected_seconds(64))), few=True)
    )
    return found


def test_a_call_that_is_quick_says_nothing_of_longer_ones(monkeypatch):
    """What it took is the way there and back."""
    found = asked(monkeypatch, QUICK * 0.9)
    assert [seconds for _, seconds in found] == [0.0, 0.0]


def test_a_slow_call_is_made_twice_and_tells_of_all_sizes(monkeypatch):
    """The machine may have been busy; pairs of positions count."""
    (sizes, first), _ = asked(monkeypatch, 8.0, 2.0)
    assert first == pytest.approx(2.0 * pairs(sizes, 64) / pairs(sizes, PILOT))


def test_a_busy_machine_makes_nothing_slow(monkeypatch):
    """The second call counts."""
    found = asked(monkeypatch, 8.0, QUICK / 2)
    assert found[0][1] == 0.0


def test_rounds_that_would_take_all_its_time_are_left_out(monkeypatch):
    """Those that confirm; the first two are made whatever they take."""
    seen = []

    def run(probe):
        seen.append(probe.sizes)
        probe.context.pace = 0.01

    grade(monkeypatch, check("a", run))
    every = rounds(PLAIN, random.Random(0))
    assert seen == [s for n, s in enumerate(every) if n < 2 or s["B"] * s["H"] * s["S"] ** 2 <= 100]
    assert 2 < len(seen) < len(every)
