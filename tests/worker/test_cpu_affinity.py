"""Processes that take turns share a CPU for a job, and are free again after it."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from attnlab.records import Code, Contract, Input, Job, UserEnvironment
from attnlab.worker import cpu_affinity
from attnlab.worker.cpu_affinity import CpuPinning

pytestmark = pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2,
    reason="the system does not say where a process may run, or there is one CPU",
)

SAYS = """
import os
from torch import nn

class Net(nn.Module):
    def forward(self, x):
        print("may run on", len(os.sched_getaffinity(0)))
        return x
"""
CONTRACT = Contract(
    sizes={"B": 2, "S": 4, "D": 8},
    init={},
    inputs=(Input(name="x", axes=("B", "S", "D")),),
    output=("B", "S", "D"),
)


def test_all_are_on_one_cpu_until_it_is_left():
    """This process, its mates and who joins; after it, each may run where it could before."""
    everywhere = os.sched_getaffinity(0)
    mate, guest = (subprocess.Popen([sys.executable, "-c", "input()"], stdin=-1) for _ in "ab")
    with mate, guest, CpuPinning(mate.pid) as one:
        one.take(guest.pid)
        places = [os.sched_getaffinity(pid) for pid in (0, mate.pid, guest.pid)]
        assert places == [{one.cpu}] * 3
        one.free(guest.pid)
        assert os.sched_getaffinity(guest.pid) == everywhere
        one.__exit__()
        assert os.sched_getaffinity(0) == os.sched_getaffinity(mate.pid) == everywhere
        one.take(guest.pid)  # too late: nobody is on one CPU any more
        assert os.sched_getaffinity(guest.pid) == everywhere
        for process in (mate, guest):
            process.communicate(b"\n")
    with CpuPinning(mate.pid):  # which has ended
        assert len(os.sched_getaffinity(0)) == 1
    assert os.sched_getaffinity(0) == everywhere


def test_where_the_system_does_not_tell_nothing_is_moved(monkeypatch):
    """A C library without sched_getcpu, or a machine with one CPU."""
    everywhere = os.sched_getaffinity(0)
    monkeypatch.setattr(cpu_affinity, "_here", lambda: -1)
    with CpuPinning():
        assert os.sched_getaffinity(0) == everywhere


@pytest.mark.parametrize("own", [True, False])
def test_a_candidate_is_on_the_judges_cpu_and_a_users_module_on_all(grader, tmp_path, own):
    """A module under study may have threads; a file that is graded computes on one."""
    surroundings = UserEnvironment(cwd=str(tmp_path)) if own else None
    job = Job(candidate=Code(file="m.py", text=SAYS), contract=CONTRACT, own=surroundings)
    for _ in range(2):
        said = re.findall(r"may run on (\d+)", grader.worker.run_job(job).output)
        assert {int(n) == 1 for n in said} == {not own}
