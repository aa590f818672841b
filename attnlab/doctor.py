"""Check this installation: one `HealthCheck` for each thing that attnlab relies on."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from attnlab import __version__
from attnlab.errors import AttnlabError
from attnlab.records import Code, Contract, Input, Job, record

TRIAL_MODULE = """import torch

class Same(torch.nn.Module):
    def forward(self, x):
        return x + 0
"""


@record
class HealthCheck:
    """The state of one thing, and what to do where it is not ok."""

    name: str
    state: Literal["ok", "warn", "fail"]
    text: str
    hint: str = ""


def check_installation(extra: Path | None = None) -> Iterator[HealthCheck]:
    """Yield all checks, cheap ones first; the last ones start the worker."""
    yield HealthCheck(name="attnlab", state="ok", text=__version__)
    yield HealthCheck(
        name="python", state="ok", text=f"{platform.python_version()}, {sys.executable}"
    )
    yield _torch()
    yield HealthCheck(name="platform", state="ok", text=f"{platform.platform()}, {_cores()} cores")
    yield from _catalogue(extra)
    yield _progress()
    yield from _worker()


def _torch() -> HealthCheck:
    """From the package metadata: only the worker imports torch."""
    try:
        return HealthCheck(name="torch", state="ok", text=version("torch"))
    except PackageNotFoundError:
        hint = "install it: pip install torch"
        return HealthCheck(name="torch", state="fail", text="not installed", hint=hint)


def _cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _catalogue(extra: Path | None) -> Iterator[HealthCheck]:
    from attnlab.catalogue.load import load, shipped_folder

    try:
        found, folder = load(extra), shipped_folder()
    except AttnlabError as error:
        yield HealthCheck(name="catalogue", state="fail", text=error.message, hint=error.hint)
        return
    more = f" and {extra}" if extra else ""
    text = f"{len(found.challenges)} challenges in {folder}{more}"
    yield HealthCheck(name="catalogue", state="ok", text=text)
    for slug, why in zip(found.broken_slugs, found.broken, strict=True):
        text = f"{slug} left out: {why.message}"
        yield HealthCheck(name="catalogue", state="warn", text=text, hint=why.hint)


def _progress() -> HealthCheck:
    from attnlab.progress import Progress

    with Progress.open() as kept:
        if kept.warning or kept.path is None:
            return HealthCheck(name="progress", state="warn", text=kept.warning or "not saved")
        return HealthCheck(name="progress", state="ok", text=str(kept.path))


def _worker() -> Iterator[HealthCheck]:
    """Run a trial job: does the worker work, and which layers isolate a candidate?"""
    from attnlab.worker.client import Worker

    job = Job(
        candidate=Code(file="trial.py", text=TRIAL_MODULE, name="Same"),
        contract=Contract(
            sizes={"B": 2}, inputs=(Input(name="x", axes=("B",)),), output=("B",), vary=()
        ),
        stages=("trace",),
    )
    try:
        with Worker() as worker:
            report = worker.run_job(job)
    except AttnlabError as error:
        yield HealthCheck(name="worker", state="fail", text=error.message, hint=error.hint)
        return
    if report.outcome != "ok":
        text = f"a trial job ended with {report.outcome}: {report.message}"
        yield HealthCheck(name="worker", state="fail", text=text, hint=report.hint)
        return
    yield HealthCheck(name="worker", state="ok", text=f"a trial job took {report.seconds:.2f} s")
    for layer in report.isolation:
        yield HealthCheck(name="isolation", state="ok", text=layer)
    for layer in report.missing:
        hint = "code is graded without this layer"
        yield HealthCheck(name="isolation", state="warn", text=layer, hint=hint)
