"""The job that grades a file against a challenge. Raises every error that needs no torch."""

import ast
from copy import copy
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Literal

from attnlab.catalogue.texts import shipped_text
from attnlab.errors import Refused
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
    if "check" in stages:
        _require_given(challenge, code)
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


def _require_given(challenge: Challenge, code: Code) -> None:
    """Raise `Refused` where a part that the task gives, and that is right, is changed."""
    if not challenge.given:
        return
    shipped = read_names(parse(shipped_text(challenge), challenge.file).body)
    mine = read_names(parse(code.text, code.file).body)
    for name in (name for name in challenge.given if name in mine):
        line = _first_change(shipped[name], mine[name])
        if line:
            raise Refused(
                f"{code.file}:{line}: {name} is not as it was given, so the file is not graded",
                f"Undo the change at that line: {name} is right, and the task leaves it alone.",
            )


def _first_change(given: ast.AST, mine: ast.AST) -> int:
    """The line where a statement first differs from the given one, docstrings apart; 0: nowhere."""
    theirs, ours = (_head_and_body(node) for node in (given, mine))
    if theirs[0] != ours[0]:
        return getattr(mine, "lineno", 1)
    for one, other in zip_longest(theirs[1], ours[1]):
        if one is None or other is None:
            return getattr(other, "lineno", 0) or getattr(mine, "end_lineno", 0) or 1
        line = _first_change(one, other)
        if line:
            return line
    return 0


def _head_and_body(node: ast.AST) -> tuple[str, list[ast.stmt]]:
    """A statement without its block, as text, and the block without a docstring."""
    body = getattr(node, "body", None)
    if not isinstance(body, list):
        return ast.dump(node), []
    stated = [s for s in body if not _is_text(s)]
    head = copy(node)
    head.body = []  # type: ignore[attr-defined]
    return ast.dump(head), stated


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
