"""What a trace and the properties say of one family, in a process of its own."""

from __future__ import annotations

import multiprocessing
import os
import signal
import warnings
from typing import NamedTuple

import torch

import attnlab
from attnlab.records import Finding
from benchmarks.wild.families import Build, Given

SECONDS = 60  # for one family: some build tables of a fixed, large size


class Wild(NamedTuple):
    """One family: what came of it."""

    family: str
    problem: str = ""  # why there is no trace
    rows: int = 0
    named: int = 0
    axes: int = 0
    findings: tuple[Finding, ...] = ()  # warnings and errors
    held: int = 0  # properties that hold
    broken: tuple[tuple[str, str], ...] = ()  # those that do not, each with what was seen

    @property
    def alarms(self) -> list[tuple[str, str]]:
        """Where something was found, and by what."""
        found = [(finding.file, finding.rule) for finding in self.findings]
        return found + [(self.family, name) for name, _ in self.broken]


def measured(family: str, build: Build) -> Wild:
    """The family built, called once without a trace, traced, and its properties looked at."""
    torch.manual_seed(0)
    try:
        given = build()
        with torch.no_grad():
            given.module(**given.call)
    except Exception as error:  # small sizes do not fit each family, and some need other inputs
        return Wild(family, f"{type(error).__name__}: {error}".splitlines()[0][:100])
    trace = attnlab.trace(given.module, dims=given.dims, **given.call).trace
    if trace.crash:
        return Wild(family, f"the trace crashed: {trace.crash.message[:60]}")
    pairs = [
        (axis, n)
        for op in trace.ops
        if len(op.shape) > 1
        for axis, n in zip(op.axes, op.shape, strict=True)
    ]
    held, broken = _properties(given)
    return Wild(
        family,
        rows=len(trace.ops),
        named=len(pairs) - sum(axis.isdigit() and n > 1 for axis, n in pairs),
        axes=len(pairs),
        findings=trace.grave,
        held=held,
        broken=broken,
    )


def _properties(given: Given) -> tuple[int, tuple[tuple[str, str], ...]]:
    found = attnlab.verify(given.module, dims=given.dims, **given.call)
    held = sum(check.outcome == "passed" for check in found.properties)
    return held, tuple((check.id, check.message) for check in found.broken)


def apart(family: str, build: Build) -> Wild:
    """The same in a process of its own, for `SECONDS` at most: some families end theirs."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    pid = os.fork()
    if pid == 0:
        signal.alarm(SECONDS)
        warnings.filterwarnings("ignore")
        try:
            theirs.send(measured(family, build))
        finally:
            os._exit(0)
    theirs.close()
    try:
        found: Wild = ours.recv()
    except EOFError:
        found = Wild(family, f"ended, or took longer than {SECONDS} s")
    finally:
        os.waitpid(pid, 0)
    return found
