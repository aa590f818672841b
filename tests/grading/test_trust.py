"""Answers that are shaped to hide something, and candidates that run out of memory."""

from __future__ import annotations

import pytest
from fakes import Host
from modules import PLAIN, inspected, job

from attnlab.candidate.host import Died
from attnlab.grading import example_run, trace_stage

# Right in shape the first few times, then empty: a difference to nothing is nothing.
SHRINKS = """
import torch
from torch import nn

class Net(nn.Module):
    calls = 0
    def __init__(self, width):
        super().__init__()
    def forward(self, x):
        Net.calls += 1
        return x if Net.calls <= 3 else x[:0]
"""
GREEDY = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
    def forward(self, x):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried 40 GB")
"""


def test_an_output_that_changes_its_shape_passes_no_later_check() -> None:
    """Once output-shape has passed, another shape fails whichever check meets it."""
    found = {c.id: c for c in inspected(SHRINKS, stages=("check",)).checks}
    assert found["output-shape"].outcome == "failed"  # at the next sizes, where it is empty
    met = [c for c in found.values() if "this time" in c.message]
    assert met
    assert all(c.outcome == "failed" and "(0, " in c.message for c in met)
    later = ("no-hidden-state", "batch-independence", "reach")
    assert "passed" not in {found[name].outcome for name in later}


def test_a_crash_for_want_of_memory_is_a_limit() -> None:
    """`trace` says memory, not a crash with nothing wrong in the shapes."""
    report = inspected(GREEDY, stages=("trace",))
    assert report.outcome == "memory"
    assert "out of memory" in report.message
    assert report.trace is not None
    assert report.trace.crash is not None


def test_a_trace_without_end_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The candidate's process writes the rows, and may write any number of them."""
    monkeypatch.setattr(example_run, "LONGEST", 100)
    host = Host()
    host.ask = lambda verb, **args: {"trace": "[" * 101}
    with pytest.raises(Died, match="a trace of over"):
        trace_stage.trace_example(job(SHRINKS, PLAIN), host)
