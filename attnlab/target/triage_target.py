"""Turn the target of a triage into a job: a script that trains is watched, a module is traced."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from pathlib import Path

from attnlab.errors import Unreadable
from attnlab.records import Job, Limits
from attnlab.target.command_line import TraceCommand
from attnlab.target.resolve import own_job, script_job
from attnlab.target.source import parse, read_source

STEPS = 20  # of training that are watched
IGNORE = re.compile(r"#\s*attnlab:\s*ignore(?:\[([\w\s,-]*)\])?")
ALL = "*"  # a comment that names no rule is about all


def triage_job(typed: TraceCommand, limits: Limits, steps: int = STEPS) -> Job:
    """The job that looks at the target in all the ways that it allows."""
    path = Path(typed.target)
    if typed.target.endswith(".py") and not typed.describes_module:
        code = read_source(path, typed.target)
        if trains(parse(code.text, code.file)):
            return replace(script_job(typed.target, limits), stages=("training",), steps=steps)
    return replace(own_job(typed, limits=limits), stages=("trace", "check"))


def trains(tree: ast.Module) -> bool:
    """Whether running the file takes optimizer steps: it holds both `X.step(...)` and a gradient,
    and code that runs."""
    called = {
        node.func.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }
    runs = any(
        isinstance(node, (ast.If, ast.For, ast.While, ast.With, ast.Try))
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))
        for node in tree.body
    )
    return runs and "step" in called and bool({"backward", "grad"} & called)


def ignored_lines(files: frozenset[str]) -> dict[tuple[str, int], frozenset[str]]:
    """By file and line: the rules that a comment `# attnlab: ignore[rule]` switches off."""
    found: dict[tuple[str, int], frozenset[str]] = {}
    for file in files:
        try:
            text = read_source(Path(file), file).text
        except (Unreadable, OSError):
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if match := IGNORE.search(line):
                rules = [word.strip() for word in (match[1] or "").split(",") if word.strip()]
                found[file, number] = frozenset(rules or [ALL])
    return found
