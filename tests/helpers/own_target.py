"""`own_job` as tests say it: one flag, one keyword."""

from __future__ import annotations

from pathlib import Path

from attnlab.records import Job
from attnlab.target import resolve
from attnlab.target.command_line import TraceCommand


def own_job(
    name: str, *, init="", sizes="", inputs=(), case: Path | None = None, tiny=False, options=None
) -> Job:
    typed = TraceCommand(
        target=name,
        init=init,
        sizes=sizes,
        inputs=tuple(inputs),
        case=str(case or ""),
        tiny=tiny,
    )
    return resolve.own_job(typed, options=options)
