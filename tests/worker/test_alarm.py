"""The alarm of code under study: it rings in time, and only while the code runs."""

import signal
import time
from dataclasses import replace

import pytest
from attacks import HONEST
from own_target import own_job

from attnlab.records import Limits
from attnlab.worker.alarm import Alarm, Hung


@pytest.fixture(autouse=True)
def quiet():
    """No alarm outlives its test."""
    before = signal.getsignal(signal.SIGALRM)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def test_it_ends_what_hangs():
    """Also where the code catches every `Exception`."""
    alarm = Alarm(0.2)

    def stubborn():
        try:
            spin(5)
        except Exception:
            pytest.fail("caught")

    with pytest.raises(Hung), alarm.on():
        stubborn()
    assert not alarm.armed


def test_it_is_silent_between_calls():
    """What waits for the next question is not interrupted."""
    Alarm(0.1)
    spin(0.3)


def test_a_signal_before_its_time_is_not_this_alarm():
    """A file may send itself one, or set a timer of its own."""
    alarm = Alarm(5.0)
    with alarm.on():
        signal.raise_signal(signal.SIGALRM)
        assert alarm.armed


def test_no_time_is_no_alarm():
    """What has no limit is not ended."""
    alarm = Alarm(0.0)
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    with alarm.on():
        spin(0.01)


LOOP = """
import torch
class M(torch.nn.Module):
    def forward(self, x):
        x = x + 1
        while True:
            pass
"""


def test_a_module_that_never_returns_is_told_with_its_line(grader, tmp_path, monkeypatch):
    """Of one's own code; the message has the line and the time, and the worker goes on."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.py").write_text(LOOP)
    job = replace(own_job("m.py"), limits=Limits(seconds=2.0))
    report = grader.worker.run_job(job)
    assert report.outcome == "timeout"
    assert report.message.startswith(("m.py:6: still running", "m.py:7: still running"))
    grader.still_serves()


LATE_LOOP = """
class Loop({base}):
    def forward(self, x, *rest):
        while {loops}:
            pass
        return super().forward(x, *rest)
"""


@pytest.mark.parametrize("loops", ["True", "x.shape[1] > 200"])
def test_a_candidate_that_never_returns_is_told_with_its_line(grader, loops):
    """In the first call and in a late one; nothing is asked after it, and the worker goes on."""
    text = HONEST + LATE_LOOP.format(base=grader.challenge.class_name, loops=loops)
    job = grader.job(text, seconds=3.0)
    report = grader.worker.run_job(replace(job, candidate=replace(job.candidate, name="Loop")))
    found = report.checks[0]
    assert (found.outcome, found.reason) == ("failed", "timeout")
    assert found.message == f"still running when the time was up: {text.splitlines()[-3].strip()}"
    assert found.line == len(text.splitlines()) - 2
    assert {c.outcome for c in report.checks[1:]} <= {"passed", "skipped"}
    grader.still_serves()
