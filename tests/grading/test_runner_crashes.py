"""The check stage when the candidate raises, dies or takes too long."""

import pytest
from fakes import Host, calls, check, grade, raises
from modules import hosted, module

from attnlab.candidate.host import Died
from attnlab.records import Contract

BAD = module("raise ValueError('no')")


# ---------------------------------------------------------------- crashes


@pytest.mark.parametrize("run", [calls, lambda p: p.inputs_after_call(p.draw())])
def test_a_module_that_raises_fails_with_its_line(monkeypatch, run):
    """The check that met the exception fails; file, line and sizes are told, and what to do is said
    of the exception, not of what the check looks for."""
    (result,) = grade(monkeypatch, check("a", run), host=hosted(BAD))
    assert (result.outcome, result.reason, result.line) == ("failed", "crashed", 9)
    assert (result.file, result.message) == ("net.py", "the call raised ValueError: no")
    assert result.advice.startswith("Look at the last operations")


def test_a_constructor_that_raises_is_told_apart(monkeypatch):
    """Building failed: there is no forward to look at."""
    host = hosted(module("return x", "if width == 8: raise ValueError('no 8')"), Contract(
        sizes={"D": 4}, init={"width": "D"}))  # fmt: skip
    (result,) = grade(monkeypatch, check("a"), host=host)
    assert result.message == "building the module raised ValueError: no 8"
    assert result.advice.startswith("Build it by itself")


def test_running_out_of_memory_has_its_own_reason(monkeypatch):
    """A MemoryError of Python and of PyTorch are no ordinary crash."""
    host = hosted(module("raise MemoryError"))
    (result,) = grade(monkeypatch, check("a", calls), host=host)
    assert result.reason == "memory"


def test_the_same_crash_is_told_once(monkeypatch):
    """Checks that met one and the same exception are folded under the first."""
    results = grade(monkeypatch, check("a", calls), check("b", calls), host=hosted(BAD))
    assert [(r.id, r.folded_under) for r in results] == [("a", ""), ("b", "a")]


def test_a_dead_host_is_renewed(monkeypatch):
    """The check that killed it fails; the next one has a fresh process with a fresh module."""
    fresh = []

    def renew():
        fresh.append(Host())
        return fresh[-1]

    killer = check("a", calls)
    host = Host()
    die = Died("crashed", "was killed by SIGSEGV")
    host.ask = lambda verb, **args: (_ for _ in ()).throw(die) if verb == "call" else {}
    first, second = grade(monkeypatch, killer, check("b", calls), host=host, renew=renew)
    assert (first.outcome, first.reason) == ("failed", "crashed")
    assert first.message == "the candidate was killed by SIGSEGV"
    assert second.outcome == "passed"
    assert fresh[0].asked[:2] == ["build", "call"]
    assert len(fresh) == 1


def test_a_host_that_dies_while_building_is_renewed_each_time(monkeypatch):
    """A constructor that kills the process fails every check, and none is left without a result."""
    made = []

    def renew():
        made.append(Host(dies=Died("memory", "ran out of memory")))
        return made[-1]

    results = grade(monkeypatch, check("a"), check("b"), host=renew(), renew=renew)
    assert [(r.outcome, r.reason) for r in results] == [("failed", "memory")] * 2
    assert len(made) == 3


def test_a_timeout_ends_everything(monkeypatch):
    """The deadline is the job's: what had no turn is skipped and says so, what passed stays."""
    died = Died("timeout", "did not answer in time")

    def run(probe):
        if probe.sizes["S"] != 4:
            raise died

    results = grade(monkeypatch, check("a"), check("b", run), check("c"), check("d", raises(died)))
    told = {r.id: (r.outcome, r.reason or r.message) for r in results}
    assert told["d"] == ("failed", "timeout")
    assert told["a"] == told["b"] == told["c"] == ("passed", "")
    results = grade(monkeypatch, check("a", raises(died)), check("b"))
    assert [(r.id, r.outcome, r.message) for r in results] == [
        ("a", "failed", "the candidate did not answer in time"),
        ("b", "skipped", "the time was up before its turn"),
    ]
