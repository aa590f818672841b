"""The job that grades a file against a challenge. Raises every error that needs no torch."""

import ast
from dataclasses import replace
from pathlib import Path
from typing import Literal

from attnlab.records import Challenge, Code, Job, Limits
from attnlab.target.source import parse, read_source
from attnlab.target.top_level import may_bind_more, no_such_name, read_names


def challenge_job(
    challenge: Challenge,
    answer: Path | Code,
    *,
    stages: tuple[Literal["trace", "check", "diff"], ...] = ("trace", "check"),
    limits: Limits | None = None,
    seed: int | None = None,
) -> Job:
    """The job that looks at a file, or at code, as an answer to `challenge`."""
    code = answer if isinstance(answer, Code) else read_source(answer)
    _require_class(challenge, code)
    reference: str | Code = challenge.reference
    if reference == "solution.py":
        reference = replace(read_source(Path(challenge.solution)), name=challenge.class_name)
    return Job(
        candidate=replace(code, name=challenge.class_name),
        contract=challenge.contract,
        reference=reference,
        stages=stages,
        limits=limits or Limits(),
        seed=seed,
    )


def _require_class(challenge: Challenge, code: Code) -> None:
    """Raise `Refused` where the file surely does not define what the challenge is about."""
    names = read_names(parse(code.text, code.file).body)
    if challenge.class_name not in names and not may_bind_more(names):
        classes = [name for name, node in names.items() if isinstance(node, ast.ClassDef)]
        raise no_such_name(code.file, challenge.class_name, names, classes)
