"""What every test may use: golden texts, and a shell with a home and a folder of its own."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from attnlab.worker.client import Worker

# Before anything imports torch: on tiny tensors a second thread costs many times what it saves.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["ATTNLAB_SERVER"] = "0"  # no test leaves a process behind; those of the server say 1
# No test depends on how busy the machine is.
settings.register_profile("any pace", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any pace")
GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write golden files anew")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden(name, text)`: the text is the file's, but for blanks at the ends of lines."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / f"{name}.txt"
        text = "\n".join(line.rstrip() for line in text.splitlines()) + "\n"
        if request.config.getoption("--update-golden"):
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8"), f"pytest --update-golden renews {name}"

    return compare


@pytest.fixture
def shown() -> Callable[..., str]:
    """`shown(page, width)`: the plain text of a page."""

    def show(page: Any, width: int = 80, encoding: str = "utf-8") -> str:
        from attnlab.render.screen import Screen

        file = io.TextIOWrapper(io.BytesIO(), encoding=encoding, write_through=True)
        page.show(Screen(file=file, width=width))
        file.seek(0)
        return file.read()

    return show


class Said(NamedTuple):
    """What one command line came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one document on stdout; fails where there is more or less than one."""
        return json.loads(self.out)


class LastingWorker:
    """A worker that `with` does not end: importing torch is most of what a command takes."""

    def __init__(self, start: type[Worker]) -> None:
        self.start = start
        self.worker: Worker | None = None

    def __enter__(self) -> Worker:
        self.worker = self.worker or self.start()
        return self.worker

    def __exit__(self, *error: object) -> None:
        pass


@pytest.fixture(scope="session")
def lasting_worker() -> Iterator[LastingWorker]:
    """One for all tests that do not look at how a worker starts and ends."""
    from attnlab.worker.client import Worker

    lasting = LastingWorker(Worker)
    yield lasting
    if lasting.worker:
        lasting.worker.close()


@pytest.fixture(scope="session")
def worker(lasting_worker: LastingWorker) -> Worker:
    return lasting_worker.__enter__()


@pytest.fixture
def shell(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    lasting_worker: LastingWorker,
) -> Callable[..., Said]:
    """`shell("grade", "too-sharp")` in an empty folder, with fresh progress."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("ATTNLAB_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("ATTNLAB_CATALOGUE", "ATTNLAB_DEBUG", "FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("attnlab.worker.client.Worker", lambda: lasting_worker)

    def run(*args: str) -> Said:
        from attnlab.cli import run as run_cli

        code = run_cli(args)
        return Said(code, *capsys.readouterr())

    return run
