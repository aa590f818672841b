"""`own_job` as tests say it: one flag, one keyword."""

from __future__ import annotations

from pathlib import Path

from attnlab import target
from attnlab.ready import Typed
from attnlab.records import Job


def own_job(
    name: str, *, init="", sizes="", inputs=(), case: Path | None = None, tiny=False
) -> Job:
    typed = Typed(
        target=name,
        init=init,
        sizes=sizes,
        inputs=tuple(inputs),
        case=str(case or ""),
        tiny=tiny,
    )
    return target.own_job(typed)
