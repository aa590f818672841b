from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnlab.commands.base import Json, Timeout, emit, limits, note, whole_number

if TYPE_CHECKING:
    from attnlab.mutation_testing.suite import Suite

PLACE = 109
Module = Annotated[str, typer.Argument(metavar="MODULE", help="Your module: my_model.py.")]
Tests = Annotated[str, typer.Option("--tests", metavar="PATH", help="Its tests: tests/.")]
Sample = Annotated[
    str, typer.Option("--sample", metavar="PERCENT", help="Try this share, always the same.")
]
Resume = Annotated[
    str,
    typer.Option(
        "--resume", metavar="FILE", help="Keep results in this file; go on where it was ended."
    ),
]
Everything = Annotated[bool, typer.Option("--all", help="Show every survivor.")]


def command(
    module: Module,
    tests: Tests = "",
    sample: Sample = "100",
    resume: Resume = "",
    everything: Everything = False,
    timeout: Timeout = "60",
    json: Json = False,
) -> int:
    """Say which bugs of this field your own tests let through.

    Each bug is put into a copy of your project, and the tests run on it. A survivor that does the
    same as your module, where that can be seen, does not count.
    """
    from attnlab.mutation_testing.suite import AT_ONCE, measure_suite
    from attnlab.render.mutate import MutatePage
    from attnlab.run_store import RunStore

    suite = _suite(module, tests, limits(timeout, "").seconds)
    percent = whole_number("--sample", sample, 1, 100, "as in 20")
    note(f"running {suite.shown_tests} in a copy of {suite.root} (your own code: not isolated)")
    store = RunStore(Path(resume) if resume else None)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        measured = measure_suite(suite, pool, store, note, percent)
    page = MutatePage(measured=measured, percent=percent, everything=everything)
    return emit(page, json, 1 if measured.of_fate("survived") else 0)


def _suite(module: str, tests: str, seconds: float) -> Suite:
    """The files that are meant; raises `Refused` or `Unreadable`."""
    from importlib.util import find_spec

    from attnlab.errors import Refused
    from attnlab.mutation_testing.project_copy import find_project
    from attnlab.mutation_testing.suite import Suite
    from attnlab.target.source import read_source
    from attnlab.target.suite_target import comparable, find_tests

    if find_spec("pytest") is None:
        raise Refused("pytest is not installed, which runs your tests", "pip install pytest")
    path = Path(module)
    text = read_source(path, module).text
    found = find_tests(path, tests)
    known = list(comparable(path, text))
    whole, whole_tests = path.resolve(), found.resolve()
    root = find_project(whole, whole_tests)
    here = Path.cwd().resolve()
    return Suite(
        root=root,
        folder=here.relative_to(root) if here.is_relative_to(root) else Path(),
        module=whole,
        tests=whole_tests,
        text=text,
        contracts=tuple((name, contract) for name, contract, _ in known),
        spans=tuple(span for _, _, span in known),
        seconds=seconds,
        shown=module,
        shown_tests=str(found),
    )
