"""Check this installation: one `HealthCheck` for each thing that attnlab relies on."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from attnlab import __version__
from attnlab.catalogue.forbidden import Act, forbidden_acts, read_trial, trial_source
from attnlab.errors import AttnlabError, Broken, NotIsolated, Refused
from attnlab.records import Code, Contract, Input, Job, record

if TYPE_CHECKING:
    from attnlab.worker.client import Worker, WorkerPool

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
    import platform  # here: every command imports this file

    yield HealthCheck(name="attnlab", state="ok", text=__version__)
    yield HealthCheck(
        name="python", state="ok", text=f"{platform.python_version()}, {sys.executable}"
    )
    yield _torch()
    yield HealthCheck(
        name="platform", state="ok", text=f"{platform.platform()}, {count_cores()} cores"
    )
    yield from _catalogue(extra)
    yield _progress()
    yield from _worker()


def _torch() -> HealthCheck:
    """From the package metadata: only the worker imports torch."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return HealthCheck(name="torch", state="ok", text=version("torch"))
    except PackageNotFoundError:
        hint = "install it: pip install torch"
        return HealthCheck(name="torch", state="fail", text="not installed", hint=hint)


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
    from attnlab.worker.server_address import find_address
    from attnlab.worker.warm_start import ask_servers, why_unwanted

    try:
        with Worker() as worker:
            report = worker.run_job(_trial_job(TRIAL_MODULE, "Same"))
    except AttnlabError as error:
        yield HealthCheck(name="worker", state="fail", text=error.message, hint=error.hint)
        return
    if report.outcome != "ok":
        text = f"a trial job ended with {report.outcome}: {report.message}"
        yield HealthCheck(name="worker", state="fail", text=text, hint=report.hint)
        return
    yield HealthCheck(name="worker", state="ok", text=f"a trial job took {report.seconds:.2f} s")
    if why := why_unwanted():
        yield HealthCheck(name="server", state="ok", text=f"torch is imported anew: {why}")
    else:
        address = find_address()
        mine = [s for s in ask_servers("status") if address and s.key == address.key]
        warm = f"process {mine[0].pid}" if mine else ""
        text = f"{warm} keeps torch imported" if warm else "none can be started here"
        yield HealthCheck(name="server", state="ok" if warm else "warn", text=text)
    for layer in report.isolation:
        yield HealthCheck(name="isolation", state="ok", text=layer)
    for layer in report.missing:
        hint = "code is graded without this layer"
        yield HealthCheck(name="isolation", state="warn", text=layer, hint=hint)


def _trial_job(text: str, name: str) -> Job:
    return Job(
        candidate=Code(file="trial.py", text=text, name=name),
        contract=Contract(
            sizes={"B": 2}, inputs=(Input(name="x", axes=("B",)),), output=("B",), vary=()
        ),
        stages=("trace",),
    )


# ---------------------------------------------------------------- isolation, tried

LEVELS = ("none", "basic", "full")
BASIC = ("own session", "dies with the worker", "memory limit", "CPU limit")


@record
class Attempt:
    """A forbidden act, and what came of trying it."""

    act: Act
    refused: bool
    why: str


def try_isolation() -> Iterator[Attempt]:
    """Try each forbidden act in a candidate's process; raises `Broken` where it cannot be tried."""
    from attnlab.catalogue.load import shipped_folder
    from attnlab.worker.client import Worker

    solution = shipped_folder() / "attention" / "too-sharp" / "solution.py"
    with tempfile.NamedTemporaryFile(dir=_home(), prefix=".attnlab-trial-") as file:
        job = _trial_job(trial_source(file.name, str(solution)), "Trial")
        with Worker() as worker:
            report = worker.run_job(job)
        Path(file.name).touch()  # it may have been removed, which is told below
    found = read_trial(report.output)
    if not found:
        raise Broken(f"no act was tried: {report.outcome} {report.message}".rstrip())
    for act in forbidden_acts():
        why = found.get(act.id, "it ended the process")
        yield Attempt(act=act, refused=why != "", why=why)


def _home() -> str | None:
    """The user's home folder, where it can be written to; else that of temporary files."""
    home = Path.home()
    return str(home) if os.access(home, os.W_OK) else None


@contextmanager
def isolated_worker(say: Callable[[str], object], own: bool = False) -> Iterator[Worker]:
    """A worker on a machine that isolates as the user requires; what the user should know of it is
    said at the end. Raises `NotIsolated` before anything runs."""
    from attnlab.worker.client import Worker

    with Worker() as worker:
        _require_isolation(worker, own)
        yield worker
    for line in worker.notes:
        say(line)


@contextmanager
def isolated_pool(say: Callable[[str], object], size: int) -> Iterator[WorkerPool]:
    """Several workers, as `isolated_worker` gives one."""
    from attnlab.worker.client import WorkerPool

    with WorkerPool(size) as pool:
        _require_isolation(pool.workers[0], own=False)
        yield pool
    for line in dict.fromkeys(line for worker in pool.workers for line in worker.notes):
        say(line)


def count_cores() -> int:
    """Those that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _require_isolation(worker: Worker, own: bool) -> None:
    """Raise `NotIsolated` where this machine lacks layers of the level that the user requires, in
    ATTNLAB_REQUIRE_ISOLATION or by the option that sets it."""
    level = os.environ.get("ATTNLAB_REQUIRE_ISOLATION", "").lower() or "none"
    if level not in LEVELS:
        raise Refused(f"--require-isolation {level}: there is no such level", "full, basic or none")
    if level == "none":
        return
    if own and level == "full":
        raise NotIsolated(
            "code of your own runs under limits, not isolated",
            "--require-isolation basic is what it has",
        )
    report = worker.run_job(_trial_job(TRIAL_MODULE, "Same"))
    lacking = [m for m in report.missing if level == "full" or m.partition(":")[0] in BASIC]
    if lacking:
        raise NotIsolated(
            f"nothing was run: this machine lacks {lacking[0]}",
            "attnlab doctor --isolation tries every forbidden act",
        )
