"""Right code that goes through pairs of positions one by one gets calls that it can answer."""

import random
from types import SimpleNamespace

import pytest
import torch
from fakes import check, grade
from modules import PLAIN

from attnlab.probe import pacing
from attnlab.probe import probe as probe_module
from attnlab.probe.inputs.sizes import rounds
from attnlab.probe.pacing import PILOT, QUICK, CallTimes, pairs


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


GIVEN = [("x", torch.zeros(2, 3)), ("mask", None)]


@pytest.mark.parametrize(
    ("usual", "calls", "last", "larger", "slow"),
    [
        (0.3, 5, 1.3, 1, True),  # four calls in one go, of which none ended
        (0.3, 5, 4.7, 1, True),  # of gradients, or on a busy machine
        (0.3, 5, 40.0, 1, False),
        (0.3, 5, 40.0, 10, True),
        (0.3, 2, 6.0, 1, False),  # nobody knows yet how long a call takes
        (0.001, 5, 0.01, 1, False),
    ],
)
def test_a_slow_file_is_told_from_one_that_hangs(monkeypatch, usual, calls, last, larger, slow):
    """By the time of the calls before, for each element of the inputs."""
    clock = [0.0]
    monkeypatch.setattr(pacing, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    times = CallTimes()
    for _ in range(calls):
        times.begin({"inputs": GIVEN})
        clock[0] += usual
        times.end()
    assert times.mean == pytest.approx(usual)
    times.begin({"inputs": [[("x", torch.zeros(2, 3 * larger))]] * 4})
    clock[0] += last
    assert times.slow() is slow
