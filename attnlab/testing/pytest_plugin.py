"""A pytest plugin: it shows a property that does not hold as a page with rows of the trace.

It is loaded with every run of pytest where attnlab is installed, so it imports next to nothing: a
test that uses `attnlab.testing.assertions` pays for torch, and no other.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from attnlab.errors import AttnlabError, PropertyFailed

if TYPE_CHECKING:
    from _pytest._code.code import TracebackEntry
    from _pytest._io import TerminalWriter

PACKAGE = Path(__file__).parent.parent
FIXTURE = "attnlab_seed"
SEED = "ATTNLAB_SEED"  # what `attnlab.testing.assertions` reads where a test names no seed
NARROWEST, WIDEST = 60, 120  # characters of a line of a page
TRACEBACKS = ("long", "short", "native", "no", "line")  # of --tb: who asks for one gets it


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("attnlab")
    group.addoption(
        "--attnlab-seed",
        type=int,
        metavar="N",
        help="repeat the sizes, weights and inputs of the run that printed this seed",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Put the seed into the environment, for assertions and for processes that a test starts."""
    before = os.environ.get(SEED)
    seed = config.getoption("attnlab_seed")
    if seed is None:
        return
    if seed < 0:
        raise pytest.UsageError(f"--attnlab-seed {seed}: write a whole number from 0 on")
    os.environ[SEED] = str(seed)
    config.add_cleanup(lambda: _restore(before))


def pytest_sessionstart(session: pytest.Session) -> None:
    """Make pages as wide as the terminal."""
    if session.config.pluginmanager.has_plugin("terminalreporter"):
        width = session.config.get_terminal_writer().fullwidth
        PropertyFailed.width = max(NARROWEST, min(width, WIDEST))


def _restore(before: str | None) -> None:
    if before is None:
        os.environ.pop(SEED, None)
    else:
        os.environ[SEED] = before


@pytest.fixture
def attnlab_seed() -> int:
    """A seed for random values of a test; it is shown when the test fails."""
    said = os.environ.get(SEED, "")
    return int(said) if said.isdecimal() else secrets.randbits(31)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    error, found = call.excinfo and call.excinfo.value, call.excinfo
    if found and isinstance(error, (PropertyFailed, AttnlabError)) and report.failed:
        if item.config.getoption("tbstyle", "auto") not in TRACEBACKS:
            page: Any = _page(item, error, found.traceback)
            report.longrepr = page
        if isinstance(error, PropertyFailed):
            report.sections.append(("attnlab", _again(error.seed)))
    elif report.failed and isinstance(item, pytest.Function) and FIXTURE in item.funcargs:
        report.sections.append(("attnlab", _again(item.funcargs[FIXTURE])))
    return report


def _again(seed: object) -> str:
    return f"--attnlab-seed {seed} draws the same sizes, weights and inputs again"


class Place(NamedTuple):
    """The place of an assertion, with the fields that pytest's summaries read."""

    path: str
    lineno: int
    message: str


class Page:
    """A page in place of a traceback; summaries and XML show `reprcrash`."""

    def __init__(self, error: PropertyFailed | AttnlabError, place: Place, source: str) -> None:
        self.reprcrash, self.source, self.kind = place, source, type(error).__name__
        self.finding = place.message
        self.page = error.page if isinstance(error, PropertyFailed) else error.hint

    def toterminal(self, tw: TerminalWriter) -> None:
        if self.source:
            tw.line(f">   {self.source}")
        tw.line(f"E   {self.finding}", bold=True, red=True)
        tw.line(f"\n{self.page}\n" if self.page else "")
        tw.line(f"{self.reprcrash.path}:{self.reprcrash.lineno}: {self.kind}")

    def __str__(self) -> str:  # how it travels between the processes of one run
        return f"{self.source}\n{self.finding}\n\n{self.page}".strip()


def _page(
    item: pytest.Item, error: PropertyFailed | AttnlabError, traceback: Iterable[TracebackEntry]
) -> Page:
    """The page of an error, with file, line and source of the assertion in the user's test."""
    entries = list(traceback)
    users = [e for e in entries if PACKAGE not in Path(e.path).parents]
    last = (users or entries)[-1]
    message = error.finding if isinstance(error, PropertyFailed) else error.message
    place = Place(_relative_path(item, str(last.path)), last.lineno + 1, message)
    return Page(error, place, str(last.statement).strip().partition("\n")[0])


def _relative_path(item: pytest.Item, path: str) -> str:
    try:
        return os.path.relpath(path, item.config.invocation_params.dir)
    except ValueError:  # another drive
        return path
