"""Runs a user's tests on many versions of their module, each in a fork of one process.

pytest is started once, in a copy of the project. When it imports the module for the first time, the
process stops there and serves: for each text that it is sent it forks, and the fork goes on with
that text as the module's source. So plugins, PyTorch and what was collected before are read once,
and no trace of another version is left in a fork, however the tests import the module.
"""

import gc
import importlib.machinery
import importlib.util
import os
import re
import signal
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import pytest

from attnlab.files import LineReader
from attnlab.records import Code, Limits, from_json, to_json
from attnlab.records.trial import Comparison, SuiteRequest, SuiteRun
from attnlab.worker.sandbox.layers import apply

MEMORY = 4 << 30  # bytes that a run may take besides what is held already
COMPARING = 20.0  # seconds for one mutant
# Plugins that would start processes of their own or measure what nobody reads.
OPTIONS = {"xdist": "-n0", "pytest_cov": "--no-cov"}
RELATIVE = re.compile(r"^(\s*from )(\.+)(\w*)", re.MULTILINE)


class FirstFailure:
    """A plugin of pytest: counts tests, and keeps the first that fails."""

    def __init__(self) -> None:
        self.tests, self.collected, self.first = 0, 0, ("", "")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._keep(report)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.collected = len(session.items)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.tests += report.when == "call" and not report.skipped
        self._keep(report)

    def _keep(self, report: pytest.CollectReport | pytest.TestReport) -> None:
        if report.failed and not self.first[0]:
            crash = getattr(report.longrepr, "reprcrash", None)
            text = (
                crash.message.splitlines()[:1] if crash else report.longreprtext.splitlines()[-1:]
            )
            self.first = report.nodeid, next(iter(text), "")

    def run(self, code: int) -> SuiteRun:
        test, message = self.first
        good = code in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
        return SuiteRun(
            outcome="passed" if good else "failed", tests=self.tests, test=test, message=message
        )


class SuiteServer:
    """Stands where Python reads the source of the module."""

    def __init__(self, root: Path, target: Path, requests: BinaryIO, answers: int) -> None:
        self.root, self.target, self.requests, self.answers = root, target, requests, answers
        self.text: str | None = None  # of the module, in a fork
        self.before = set[str]()  # modules that the process holds
        self.read_code: Any = importlib.machinery.SourceFileLoader.get_code

    def code_of(self, loader: importlib.machinery.SourceFileLoader, name: str) -> Any:
        """In place of `SourceFileLoader.get_code`; the first call for the module serves."""
        if Path(os.path.realpath(loader.path)) != self.target:
            return self.read_code(loader, name)
        if self.text is None:
            self.serve(name)
        return compile(self.text or "", loader.path, "exec", dont_inherit=True)

    def serve(self, name: str) -> None:
        """Answer requests until there are no more; returns in forks alone."""
        self.before = set(sys.modules)
        for line in self.requests:
            request = from_json(SuiteRequest, line)
            self.target.write_text(request.text, encoding="utf-8")  # for those who read the file
            read, write = os.pipe()
            child = os.fork()
            if child == 0:
                apply(Limits(memory=MEMORY), own=True)
                os.close(read)
                self.text, self.answers = request.text, write
                if not request.contracts:
                    return
                self.finish(self._compare(request, name))
            os.close(write)
            run = _await(child, read, request.seconds)
            _import_all(run.imported)
            self.before.update(run.imported)
            _send(self.answers, replace(run, imported=()))
        os._exit(0)

    def imported(self) -> tuple[str, ...]:
        """The modules that this fork has imported, but for those of the project."""
        new = [name for name in sys.modules if name not in self.before]
        files = ((name, getattr(sys.modules[name], "__file__", None)) for name in new)
        inside = f"{self.root}{os.sep}"
        return tuple(name for name, file in files if file and not file.startswith(inside))

    def finish(self, run: SuiteRun) -> NoReturn:
        """Answer, and end the process without what else would be done at its end."""
        _send(self.answers, run)
        os._exit(0)

    def _compare(self, request: SuiteRequest, name: str) -> SuiteRun:
        """How each candidate differs from the module, as far as its classes can be built."""
        from attnlab.mutation_testing.equivalence import Standard, difference, standard
        from attnlab.mutation_testing.fork_pool import try_in_forks

        def code(text: str, wanted: str) -> Code:
            whole = make_imports_absolute(text, name.rpartition(".")[0])
            return Code(file=self.target.name, text=whole, name=wanted, path=str(self.target))

        standards: dict[str, list[Standard]] = {}
        for wanted, contract in request.contracts:
            with suppress(Exception):  # one that cannot be fed as was guessed is not compared
                standards[wanted] = standard([code(request.text, wanted)], contract, seed=0)

        def compare(number: int) -> str:
            candidate = request.candidates[number]
            names = tuple(name for name in candidate.names if name in standards)
            found = (difference(code(candidate.text, n), standards[n]) for n in names)
            return to_json(Comparison(difference=next(filter(None, found), ""), compared=names))

        hung = Comparison(difference="it crashes or hangs")
        answers = try_in_forks(len(request.candidates), compare, COMPARING) if standards else []
        found = [from_json(Comparison, a) if isinstance(a, bytes) else hung for a in answers]
        return SuiteRun(outcome="passed", comparisons=tuple(found))


def make_imports_absolute(text: str, package: str) -> str:
    """A module's source as it can be run alone: `from .rope import turn` names its package."""

    def absolute(found: re.Match[str]) -> str:
        parts = package.split(".")
        above = ".".join(parts[: len(parts) - len(found[2]) + 1])
        return f"{found[1]}{above}{'.' * bool(found[3])}{found[3]}"

    return RELATIVE.sub(absolute, text) if package else text


def _await(child: int, read: int, seconds: float) -> SuiteRun:
    """The answer of a fork, or how it ended."""
    begin = time.monotonic()
    try:
        line = LineReader(read).line(begin + seconds)
    except TimeoutError:
        return SuiteRun(outcome="timeout", seconds=seconds)
    except EOFError:
        return SuiteRun(outcome="crashed", message="the process of the tests ended")
    finally:
        os.close(read)
        _kill(child)
    return replace(from_json(SuiteRun, line), seconds=time.monotonic() - begin)


def _import_all(names: Iterable[str]) -> None:
    """Import here what a run has imported, so that the next fork need not."""
    for name in names:
        with suppress(Exception):
            importlib.import_module(name)
    gc.freeze()  # a collection in a fork would copy every page


def _kill(child: int) -> None:
    """End a fork and all that it has started."""
    for kill in (os.killpg, os.kill):
        try:
            kill(child, signal.SIGKILL)
        except ProcessLookupError:
            continue
    os.waitpid(child, 0)


def _send(to: int, run: SuiteRun) -> None:
    with open(to, "wb", closefd=False) as stream:
        stream.write(to_json(run).encode() + b"\n")


def main(root: str, target: str, *tests: str) -> NoReturn:
    """Run the tests of the project in `root`; requests come on stdin, answers go to stdout."""
    requests, answers = os.fdopen(os.dup(0), "rb", buffering=0), os.dup(1)
    for number, mode in ((0, os.O_RDONLY), (1, os.O_WRONLY), (2, os.O_WRONLY)):
        os.dup2(os.open(os.devnull, mode), number)
    server = SuiteServer(Path(root), Path(os.path.realpath(target)), requests, answers)
    machinery: Any = importlib.machinery.SourceFileLoader
    machinery.get_code = lambda loader, name: server.code_of(loader, name)  # noqa: PLW0108  binds
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"  # of processes that tests start: the source changes
    plugin = FirstFailure()
    more = [o for name, o in OPTIONS.items() if importlib.util.find_spec(name)]
    sys.dont_write_bytecode = False  # tests are compiled once
    # Of a failure the first line alone is kept: no source is quoted for it.
    quiet = ["-q", "-s", "-x", "-p", "no:unraisableexception", "--tb=native"]
    run = plugin.run(pytest.main([*quiet, *more, *tests], plugins=[plugin]))
    if server.text is None:
        run = SuiteRun(outcome="unused", tests=plugin.collected, test=run.test, message=run.message)
    server.finish(replace(run, imported=server.imported()))


if __name__ == "__main__":
    main(*sys.argv[1:])
