"""Is this installation well? One `Vital` for each thing that attnlab relies on."""

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

TRIAL = """import torch

class Same(torch.nn.Module):
    def forward(self, x):
        return x + 0
"""


@record
class Vital:
    """One thing looked at: how it is, and what to do where it is not well."""

    name: str
    state: Literal["ok", "warn", "fail"]
    text: str
    hint: str = ""


def vitals(extra: Path | None = None) -> Iterator[Vital]:
    """Everything looked at, cheap things first; the last ones start the worker."""
    yield Vital(name="attnlab", state="ok", text=__version__)
    yield Vital(name="python", state="ok", text=f"{platform.python_version()}, {sys.executable}")
    yield _torch()
    yield Vital(name="platform", state="ok", text=f"{platform.platform()}, {_cores()} cores")
    yield from _catalogue(extra)
    yield _progress()
    yield from _worker()


def _torch() -> Vital:
    """From the installed metadata: importing torch is the worker's business."""
    try:
        return Vital(name="torch", state="ok", text=version("torch"))
    except PackageNotFoundError:
        hint = "install it: pip install torch"
        return Vital(name="torch", state="fail", text="not installed", hint=hint)


def _cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _catalogue(extra: Path | None) -> Iterator[Vital]:
    from attnlab.catalogue.load import load, shipped_folder

    try:
        found, folder = load(extra), shipped_folder()
    except AttnlabError as error:
        yield Vital(name="catalogue", state="fail", text=error.message, hint=error.hint)
        return
    more = f" and {extra}" if extra else ""
    text = f"{len(found.challenges)} challenges in {folder}{more}"
    yield Vital(name="catalogue", state="ok", text=text)
    for slug, why in zip(found.broken_slugs, found.broken, strict=True):
        text = f"{slug} left out: {why.message}"
        yield Vital(name="catalogue", state="warn", text=text, hint=why.hint)


def _progress() -> Vital:
    from attnlab.progress import Progress

    with Progress.open() as kept:
        if kept.warning or kept.path is None:
            return Vital(name="progress", state="warn", text=kept.warning or "not kept")
        return Vital(name="progress", state="ok", text=str(kept.path))


def _worker() -> Iterator[Vital]:
    """A trial job tells whether the worker works and which layers hold a candidate in."""
    from attnlab.worker.client import Worker

    job = Job(
        candidate=Code(file="trial.py", text=TRIAL, name="Same"),
        contract=Contract(
            sizes={"B": 2}, inputs=(Input(name="x", axes=("B",)),), output=("B",), vary=()
        ),
        stages=("trace",),
    )
    try:
        with Worker() as worker:
            report = worker.run_job(job)
    except AttnlabError as error:
        yield Vital(name="worker", state="fail", text=error.message, hint=error.hint)
        return
    if report.outcome != "ok":
        text = f"a trial job came out {report.outcome}: {report.message}"
        yield Vital(name="worker", state="fail", text=text, hint=report.hint)
        return
    yield Vital(name="worker", state="ok", text=f"a trial job took {report.seconds:.2f} s")
    for layer in report.isolation:
        yield Vital(name="isolation", state="ok", text=layer)
    for layer in report.missing:
        hint = "code is graded without this layer"
        yield Vital(name="isolation", state="warn", text=layer, hint=hint)
