"""What `attnlab mutate` takes: a module, its tests, and what of it can be compared."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from attnlab.errors import AttnlabError, Refused, Unreadable
from attnlab.files import exists
from attnlab.records import Contract
from attnlab.target.command_line import TraceCommand
from attnlab.target.resolve import own_job
from attnlab.target.source import parse

SPAN = tuple[int, int]  # the first and the last line of a definition


def find_tests(module: Path, named: str) -> Path:
    """The tests that are named, else those that lie where tests of this module would."""
    if named:
        found = Path(named)
        if not exists(found):
            raise Unreadable(f"--tests {named}: no such file or folder", "name the tests", named)
        return found
    folders = dict.fromkeys((Path(), module.parent, *list(module.parents)[1:3]))
    names = (f"test_{module.name}", "tests", "test")
    for path in (folder / name for folder in folders for name in names):
        if exists(path):
            return path
    hint = f"name them: attnlab mutate {module} --tests tests/"
    raise Refused(f"no tests lie near {module}", hint, "--tests")


def comparable(module: Path, text: str) -> Iterator[tuple[str, Contract, SPAN]]:
    """The classes and functions of a file that can be built and fed by what is inferred of them."""
    for node in parse(text, str(module)).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            try:
                job = own_job(TraceCommand(target=f"{module}:{node.name}"))
            except AttnlabError:
                continue
            if job.contract is not None:
                yield node.name, job.contract, (node.lineno, node.end_lineno or node.lineno)
