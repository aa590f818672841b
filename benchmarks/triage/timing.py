"""Processor seconds: of a triage, and of a script's own first steps."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from attnlab.records import Code, Job
from attnlab.target.triage_target import STEPS
from attnlab.worker.client import Worker

RUN = """
import runpy, sys
from torch.optim import optimizer
left = [int(sys.argv[1])]
def count(*_):
    left[0] -= 1
    if left[0] == 0:
        raise SystemExit
optimizer.register_optimizer_step_post_hook(count)
sys.argv = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
LONGEST = 300  # seconds for a script's own first steps
Answer = TypeVar("Answer")


def measured(run: Callable[[], Answer]) -> tuple[Answer, float]:
    """What it returns, and the processor seconds that its child processes took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    answer = run()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return answer, sum(
        getattr(after, name) - getattr(before, name) for name in ("ru_utime", "ru_stime")
    )


def of_import() -> float:
    """What a worker takes to import torch."""

    def start() -> None:
        with Worker() as worker:
            worker.run_job(Job(candidate=Code(text="", file="nothing.py"), stages=()))

    return measured(start)[1]


def of_own_steps(folder: Path, target: str) -> float:
    """What the script itself takes for as many steps as a triage watches."""
    words = [sys.executable, "-c", RUN, str(STEPS), target]

    def run() -> None:
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(words, cwd=folder, capture_output=True, timeout=LONGEST, check=False)

    return measured(run)[1]
