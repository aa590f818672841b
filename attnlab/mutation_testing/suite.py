"""How strong is a user's own test suite? It should reject every bug that can be put into a module.

The bugs are those that `operators/` makes of the module. The tests run on each in a copy of the
project (`suite_server.py`). A mutant that they pass is compared with the module itself, as far as
its classes can be built and fed by what is inferred of them: one that does the same is equivalent.
"""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue

from attnlab.errors import Broken, Refused
from attnlab.files import LineReader
from attnlab.mutation_testing.measure import is_drawn, make_trial
from attnlab.mutation_testing.operators.base import Mutant, family_of, mutants
from attnlab.mutation_testing.project_copy import project_copies
from attnlab.records import Contract, from_json, to_json
from attnlab.records.trial import (
    Comparison,
    Fate,
    SuiteCandidate,
    SuiteRequest,
    SuiteRun,
    SuiteStrength,
    Trial,
)
from attnlab.run_store import RunStore, result_key

AT_ONCE = max(1, min(4, os.cpu_count() or 1))
SLOWER, LEAST = 5.0, 3.0  # times the unmutated run, and seconds, that a mutant may take
START_TIME = 60.0  # seconds more, to import what the tests need
STANDARDS_TIME = 60.0  # seconds to compute what the module itself does
FIELD = ("masks", "scores", "positions", "axes", "layers", "training")
CHUNK = 20  # survivors that are compared in one request
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "MKL", "OPENBLAS")}  # forks need it


@dataclass(frozen=True)
class Suite:
    """A module, its tests, and how long these may take."""

    root: Path  # of the project
    folder: Path  # in it, where the command was typed
    module: Path
    tests: Path
    text: str  # of the module
    contracts: tuple[tuple[str, Contract], ...]  # of what of it can be compared
    spans: tuple[tuple[int, int], ...]  # the lines of each of these
    seconds: float  # for the run on the module as it is
    shown: str  # the module as messages name it
    shown_tests: str


def measure_suite(
    suite: Suite, pool: Executor, store: RunStore, note: Callable[[str], None], percent: int
) -> SuiteStrength:
    """Run the tests on every mutant; raises `Refused` where they cannot judge one."""
    with project_copies(suite.root, AT_ONCE) as copies, ExitStack() as stack:
        key = result_key(str(copies[0]), suite.shown, suite.shown_tests)
        started = [stack.enter_context(suite_process(suite, copy)) for copy in copies]
        runs = [run_unmutated(suite, started[0])]
        runs += pool.map(lambda server: run_unmutated(suite, server), started)
        servers = SimpleQueue[SuiteProcess]()
        for server in started:
            servers.put(server)
        seconds = max(run.seconds for run in runs[1:])  # the first imports what the others find
        tester = MutantTester(suite, servers, store, key, SLOWER * seconds + LEAST)
        to_try = sorted((m for m in mutants(suite.text) if is_drawn(m, percent)), key=_field_first)
        note(f"the tests take {seconds:.1f} s; {len(to_try)} mutants of {suite.shown}")
        tried = []
        for number, trial in enumerate(pool.map(tester.trial, to_try), 1):
            tried.append((trial, to_try[number - 1]))
            if not number % 100:
                note(f"{number} of {len(to_try)} tried")
        trials, unproved = tester.settle(tried, pool)
    return SuiteStrength(
        module=suite.shown,
        suite=suite.shown_tests,
        tests=runs[0].tests,
        seconds=seconds,
        trials=tuple(trials),
        unproved=unproved,
    )


def _field_first(mutant: Mutant) -> tuple[int, int, str]:
    """Bugs of masks, scores and positions before those that any code may have."""
    family = family_of(mutant.mutation)
    rank = FIELD.index(family) if family in FIELD else len(FIELD)
    return rank, mutant.line, mutant.mutation


def run_unmutated(suite: Suite, server: SuiteProcess) -> SuiteRun:
    """The tests on the module as it is; raises `Refused` unless they all pass."""
    run = server.ask(SuiteRequest(text=suite.text, seconds=suite.seconds), suite.seconds)
    tests, module = suite.shown_tests, suite.shown
    again = f"python -m pytest {tests}"
    if run.outcome == "unused" and not run.tests:
        why = f": {run.test}: {run.message}" if run.message else ""
        raise Refused(
            f"{tests} holds no test that pytest collects{why}", f"{again} says more", tests
        )
    if run.outcome == "unused":
        hint = f"the tests must import {module} itself, not an installed copy of it"
        raise Refused(f"no test in {tests} imports {module}", hint, tests)
    if run.outcome == "timeout":
        says = f"the tests do not end within {suite.seconds:g} s on {module} as it is"
        raise Refused(says, f"{again} --durations=5 shows the slow ones; or --timeout 300", tests)
    if run.outcome != "passed":
        says = f"{tests} fails on {module} as it is: {run.test or 'pytest'}: {run.message}"
        raise Refused(says, f"make it pass first: {again}", run.test or tests)
    if not run.tests:
        raise Refused(f"every test in {tests} was skipped", f"{again} -rs says why", tests)
    return run


@dataclass(frozen=True)
class MutantTester:
    """Tries mutants on whichever process of the tests is free."""

    suite: Suite
    servers: SimpleQueue[SuiteProcess]
    store: RunStore
    key: str  # of results in the store
    seconds: float  # for one run

    def trial(self, mutant: Mutant) -> Trial:
        """The mutant killed by the first test that fails, or survived, for now."""
        run = self._known(f"{self.key} run", mutant.text) or self._run(mutant)
        reasons = {
            "failed": run.test,
            "crashed": run.message,
            "timeout": f"no end within {self.seconds:.0f} s",
        }
        fate: Fate = "survived" if run.outcome == "passed" else "killed"
        reason = reasons.get(run.outcome, "")
        return make_trial(self.suite.shown, mutant, fate, reason)

    def settle(
        self, tried: Sequence[tuple[Trial, Mutant]], pool: Executor
    ) -> tuple[list[Trial], int]:
        """Every trial, those that survived told from equivalent ones; how many could not be."""
        alive = [number for number, (trial, _) in enumerate(tried) if trial.fate == "survived"]
        chunks = [alive[at : at + CHUNK] for at in range(0, len(alive), CHUNK)]
        mutants = [[tried[number][1] for number in chunk] for chunk in chunks]
        compared = [each for chunk in pool.map(self._compare, mutants) for each in chunk]
        trials, unproved = [trial for trial, _ in tried], 0
        for number, comparison in zip(alive, compared, strict=True):
            same = not comparison.difference
            proved = same and bool(comparison.compared)
            unproved += same and not proved
            fate: Fate = "equivalent" if proved else "survived"
            trials[number] = replace(trials[number], fate=fate, reason=comparison.difference)
        return trials, unproved

    def _candidate(self, mutant: Mutant) -> SuiteCandidate:
        """What holds the line is compared; without that nothing is."""
        spans = zip(self.suite.contracts, self.suite.spans, strict=True)
        names = (name for (name, _), (first, last) in spans if first <= mutant.line <= last)
        return SuiteCandidate(text=mutant.text, names=tuple(names))

    def _run(self, mutant: Mutant) -> SuiteRun:
        request = SuiteRequest(text=mutant.text, seconds=self.seconds)
        run = self._ask(request, self.seconds)
        self.store.add(_text_key(f"{self.key} run", mutant.text), mutant.mutation, run)
        return run

    def _compare(self, chunk: Sequence[Mutant]) -> Sequence[Comparison]:
        key, texts = f"{self.key} compare", "\n".join(mutant.text for mutant in chunk)
        if run := self._known(key, texts):
            return run.comparisons
        candidates = tuple(map(self._candidate, chunk))
        named = {name for candidate in candidates for name in candidate.names}
        seconds = STANDARDS_TIME + 20.0 * len(chunk)
        request = SuiteRequest(
            text=self.suite.text,
            seconds=seconds,
            candidates=candidates,
            contracts=tuple(pair for pair in self.suite.contracts if pair[0] in named),
        )
        run = self._ask(request, seconds) if named else SuiteRun(outcome="passed")
        if len(run.comparisons) != len(chunk):
            return [Comparison()] * len(chunk)
        self.store.add(_text_key(key, texts), "comparison", run)
        return run.comparisons

    def _ask(self, request: SuiteRequest, seconds: float) -> SuiteRun:
        server = self.servers.get()
        try:
            return server.ask(request, seconds)
        finally:
            self.servers.put(server)

    def _known(self, key: str, text: str) -> SuiteRun | None:
        return self.store.get(_text_key(key, text), SuiteRun)


def _text_key(key: str, text: str) -> str:
    return f"{key} {hashlib.sha256(text.encode()).hexdigest()[:16]}"


# ---------------------------------------------------------------- the process


class SuiteProcess:
    """The front's end of a process that holds the tests."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin
        assert process.stdout
        self.to, self.answers = process.stdin, LineReader(process.stdout.fileno())

    def ask(self, request: SuiteRequest, seconds: float) -> SuiteRun:
        """The answer to a request; a timeout where even the server gives none."""
        try:
            self.to.write(to_json(request).encode() + b"\n")
            self.to.flush()
            line = self.answers.line(time.monotonic() + seconds + START_TIME)
        except TimeoutError:
            return SuiteRun(outcome="timeout")
        except (BrokenPipeError, EOFError):
            hint = "python -m pytest of these tests may tell why"
            raise Broken("the process that runs the tests ended", hint) from None
        return from_json(SuiteRun, line)


@contextmanager
def suite_process(suite: Suite, copy: Path) -> Iterator[SuiteProcess]:
    """A process that runs the tests of a copy of the project."""
    module, tests = (str(copy / p.relative_to(suite.root)) for p in (suite.module, suite.tests))
    here = copy / suite.folder if (copy / suite.folder).is_dir() else copy
    roots = [str(folder) for folder in (copy, copy / "src", Path(module).parent) if folder.is_dir()]
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    paths = [*dict.fromkeys(roots), *filter(None, given)]
    with subprocess.Popen(
        [sys.executable, "-m", "attnlab.mutation_testing.suite_server", str(copy), module, tests],
        cwd=here,
        env={**os.environ, **ONE_THREAD, "PYTHONPATH": os.pathsep.join(paths)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            yield SuiteProcess(process)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
