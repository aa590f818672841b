"""A user's own tests are run on mutants of a module, and what they let through is told."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from attnlab.commands.mutate import _suite
from attnlab.errors import Refused
from attnlab.mutation_testing.project_copy import find_project
from attnlab.mutation_testing.suite import measure_suite
from attnlab.mutation_testing.suite_server import make_imports_absolute
from attnlab.records.trial import SuiteStrength
from attnlab.run_store import RunStore

SCALE = """import math


def scale(width):
    if width < 1:
        raise ValueError(width)
    return 1 / math.sqrt(width)
"""
WEAK = "from scale import scale\n\ndef test_positive():\n    assert scale(4) > 0\n"
EXACT = """import pytest
import scale

def test_values():
    assert [scale.scale(n) for n in (1, 4, 100)] == [1, 0.5, 0.1]

def test_refuses():
    with pytest.raises(ValueError, match="0"):
        scale.scale(0)
"""


@pytest.fixture(autouse=True)
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each process imports pytest; that several share the work is tested with the command."""
    monkeypatch.setattr("attnlab.mutation_testing.suite.AT_ONCE", 1)


def measure(
    folder: Path, tests: str, module: str = SCALE, seconds: float = 60.0, percent: int = 25
) -> SuiteStrength:
    (folder / "scale.py").write_text(module, encoding="utf-8")
    (folder / "test_scale.py").write_text(tests, encoding="utf-8")
    suite = _suite(str(folder / "scale.py"), str(folder / "test_scale.py"), seconds)
    with ThreadPoolExecutor(2) as pool, closing(RunStore(folder / "kept.db")) as store:
        return measure_suite(suite, pool, store, lambda _: None, percent)


def test_weak_tests_let_bugs_through_that_exact_ones_reject(tmp_path: Path) -> None:
    """The score is of the tests, not of the module; a mutant is told by its line and change."""
    for name in ("weak", "exact"):
        (tmp_path / name).mkdir()
    weak, exact = (measure(tmp_path / n, t) for n, t in (("weak", WEAK), ("exact", EXACT)))
    missed = {(t.line, t.after) for t in weak.of_fate("survived")}
    assert missed
    assert not missed & {(t.line, t.after) for t in exact.of_fate("survived")}
    assert missed <= {(t.line, t.after) for t in exact.of_fate("killed")}
    again = measure(tmp_path / "weak", WEAK)
    assert again.trials == weak.trials
    assert (tmp_path / "weak/scale.py").read_text(encoding="utf-8") == SCALE


@pytest.mark.parametrize(
    ("tests", "said"),
    [
        (WEAK.replace("> 0", "< 0"), "fails on .*scale.py as it is: .*test_positive: "),
        ("import nothing_here\n" + WEAK, "holds no test that pytest collects: .*nothing_here"),
        ("def test_other():\n    pass\n", "no test in .* imports .*scale.py"),
        (WEAK.replace("assert", "while True: pass\n    assert"), "do not end within 2 s"),
    ],
    ids=["fails", "broken", "unused", "hangs"],
)
def test_tests_that_cannot_judge_are_refused_in_a_line(
    tmp_path: Path, tests: str, said: str
) -> None:
    """Nothing is said of mutants by tests that say nothing of the module as it is."""
    with pytest.raises(Refused, match=said):
        measure(tmp_path, tests, seconds=2.0)


def test_a_mutant_that_does_the_same_is_left_out(tmp_path: Path) -> None:
    """Survivors are compared with the module: an equivalent one is no gap of the tests."""
    module = "import torch\n\n\ndef turn(x):\n    return torch.relu(x).abs()\n"
    tests = (
        "import scale, torch\n\ndef test_it():\n    assert scale.turn(torch.ones(2)).sum() == 2\n"
    )
    found = measure(tmp_path, tests, module, percent=100)
    assert "return torch.relu(x)" in {t.after for t in found.of_fate("equivalent")}
    assert any("output" in t.reason for t in found.of_fate("survived"))


def test_relative_imports_name_their_package() -> None:
    """A module of a package is compared outside of it, so its imports must say where from."""
    text = "from .rope import turn\nfrom ..masks import low\nfrom . import sizes\n"
    whole = make_imports_absolute(text, "net.blocks").splitlines()
    assert [line.split()[1] for line in whole] == ["net.blocks.rope", "net.masks", "net.blocks"]
    assert make_imports_absolute(text, "") == text


def test_a_project_is_the_nearest_folder_with_its_files(tmp_path: Path) -> None:
    """The copy holds what the tests may read, and not the whole home folder."""
    for name in ("proj/src", "proj/tests"):
        (tmp_path / name).mkdir(parents=True)
    module, tests = tmp_path / "proj/src/net.py", tmp_path / "proj/tests"
    assert find_project(module, tests) == tmp_path / "proj"
    (tmp_path / "pyproject.toml").touch()
    assert find_project(module, tests) == tmp_path
