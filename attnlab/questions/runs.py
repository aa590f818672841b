"""What broken programs showed as they trained: an incident is asked at once, not after its run.

`runs.json` is written by `python -m benchmarks.quiz --effects`. A run is kept under its program and
digits of all that it depends on; where those have changed since, the program runs again.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attnlab.records.program import ProgramJob, TrainingRun

FILE = Path(__file__).with_name("runs.json")
SHORT = 12  # digits


@cache
def shipped() -> dict[str, TrainingRun]:
    """The runs that come with attnlab, by their keys."""
    from attnlab.records import from_json
    from attnlab.records.program import TrainingRun

    return from_json(dict[str, TrainingRun], FILE.read_text("utf-8")) if FILE.exists() else {}


def run_key(job: ProgramJob) -> str:
    """What the run of a program depends on: how it trains, and its files."""
    whole = repr((job.program.training, sorted(job.files.items())))
    return f"{job.program.slug} {hashlib.sha256(whole.encode()).hexdigest()[:SHORT]}"
