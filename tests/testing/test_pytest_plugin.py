"""The plugin of pytest: a page instead of a traceback, a seed that repeats it, and no torch."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from attnlab.errors import PropertyFailed

pytest_plugins = ["pytester"]
ROOT = Path(__file__).parents[2]
INSTALLED = bool(entry_points(group="pytest11", name="attnlab"))
PLUGIN = () if INSTALLED else ("-p", "attnlab.testing.pytest_plugin")
# A module that leaks is slow to make; what the plugin does needs the exception alone.
FAILING = """
    from attnlab.errors import PropertyFailed

    def assert_causal(model):
        raise PropertyFailed("causality: output[2] changed", "Net.forward, net.py:3\\n\\nrows", 42)

    def test_model():
        assert_causal(
            None)
"""

REFUSING = """
    from attnlab.errors import Refused

    def refuse():
        raise Refused("the size of D is not said", 'Add sizes={"D": 16}.')

    def test_model():
        refuse()
"""


@pytest.fixture(autouse=True)
def width():
    """Of the pages of this very run, which a run inside of it would change."""
    before = PropertyFailed.width
    yield
    PropertyFailed.width = before


@pytest.fixture
def run(pytester, monkeypatch):
    monkeypatch.delenv("ATTNLAB_SEED", raising=False)

    def runs(source, *options):
        pytester.makepyfile(source)
        return pytester.runpytest(*PLUGIN, "-p", "no:cacheprovider", *options)

    return runs


@pytest.fixture
def run_apart(pytester, monkeypatch):
    """In a process of its own: torch cannot be imported, dropped and imported again."""
    monkeypatch.setenv("COLUMNS", "100")

    def runs(source):
        pytester.makepyfile(source)
        return pytester.runpytest_subprocess(*PLUGIN, "-p", "no:cacheprovider")

    return runs


def test_a_property_that_does_not_hold_is_a_page(run):
    """The assertion, the finding, its place and rows; no line of a traceback."""
    result = run(FAILING)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "* test_model *",
            ">   raise PropertyFailed(*",
            "E   causality: output[[]2] changed",
            "",
            "Net.forward, net.py:3",
            "",
            "rows",
            "",
            "test_a_property_that_does_not_hold_is_a_page.py:4: PropertyFailed",
            "* attnlab *",
            "--attnlab-seed 42 draws the same sizes, weights and inputs again",
            "FAILED *::test_model - causal*",
        ],
        consecutive=False,
    )
    result.stdout.no_fnmatch_line("*def assert_causal*")


def test_the_line_is_that_of_the_test(run_apart):
    """Of a real assertion, the frames inside attnlab are left out."""
    result = run_apart(
        """
        import torch
        from attnlab.testing import assert_finite

        class Net(torch.nn.Module):
            def forward(self, x):
                return x / 0

        def test_net():
            net = Net()
            assert_finite(net, "x: B S D", sizes={"D": 4})
        """
    )
    result.stdout.fnmatch_lines(
        [
            '>   assert_finite(net, "x: B S D", sizes={"D": 4})',
            "E   finite: *",
            "Net.forward, *:5  B=3 S=7 D=4  seed *",
            "*line  op *",
            "!     6  div  B S D*",
            "next: Look at the first row that is flagged*",
            "test_the_line_is_that_of_the_test.py:10: PropertyFailed",
        ]
    )
    result.stdout.no_fnmatch_line("*testing.py:*: PropertyFailed")


@pytest.mark.parametrize("style", ["short", "long", "native"])
def test_a_traceback_is_there_for_who_asks(run, style):
    """--tb says what is wanted; the seed is told all the same."""
    result = run(FAILING, f"--tb={style}")
    result.stdout.fnmatch_lines(["*raise PropertyFailed*", "*--attnlab-seed 42*"])


def test_what_is_refused_is_a_page_too(run):
    """Nothing was checked, so there is no seed: what is missing, how to say it, and where."""
    result = run(REFUSING)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "E   the size of D is not said",
            "Add sizes=*",
            "test_what_is_refused_is_a_page_too.py:*: Refused",
            "FAILED *::test_model - the size of*",
        ]
    )
    result.stdout.no_fnmatch_line("*attnlab-seed*")
    result.stdout.no_fnmatch_line("*def refuse*")


@pytest.mark.parametrize(("columns", "width"), [("80", 80), ("50", 60), ("300", 120)])
def test_a_page_is_as_wide_as_the_terminal(run, monkeypatch, columns, width):
    """Within limits: what is narrower cannot be read, what is wider the eye does not follow."""
    wide = """
        from attnlab.errors import PropertyFailed

        def test_it():
            assert False, f"it is {PropertyFailed.width}"
    """
    monkeypatch.setenv("COLUMNS", columns)
    run(wide).stdout.fnmatch_lines([f"E*AssertionError: it is {width}"])


def test_other_failures_are_none_of_ours(run):
    """A plain assertion looks as it always did."""
    result = run("def test_plain():\n    one = 1\n    assert one == 2")
    result.stdout.fnmatch_lines([">       assert one == 2", "E       assert 1 == 2"])
    result.stdout.no_fnmatch_line("*attnlab-seed*")


def test_the_page_reaches_the_xml_report(run, pytester):
    """Where tests run out of sight, the finding is the message."""
    run(FAILING, "--junitxml=report.xml")
    text = (pytester.path / "report.xml").read_text(encoding="utf-8")
    assert '<failure message="causality: output[2] changed">' in text
    assert "Net.forward, net.py:3" in text


SEEDED = """
    import os

    def test_one(attnlab_seed):
        assert os.environ.get("ATTNLAB_SEED") in (None, str(attnlab_seed))
        print("drawn", attnlab_seed)
        assert False
"""


def test_the_seed_of_the_fixture_is_told(run):
    """And the option gives it again."""
    result = run(SEEDED)
    lines = result.stdout.lines
    (drawn,) = (line.split()[1] for line in lines if line.startswith("drawn "))
    result.stdout.fnmatch_lines([f"--attnlab-seed {drawn} draws *"])
    run(SEEDED, "--attnlab-seed", drawn).stdout.fnmatch_lines([f"drawn {drawn}"])
    assert "ATTNLAB_SEED" not in os.environ


def test_a_seed_of_the_environment_comes_back(run, monkeypatch):
    """The option holds for its run alone."""
    monkeypatch.setenv("ATTNLAB_SEED", "5")
    run(SEEDED, "--attnlab-seed", "6").stdout.fnmatch_lines(["drawn 6"])
    assert os.environ["ATTNLAB_SEED"] == "5"
    run(SEEDED).stdout.fnmatch_lines(["drawn 5"])


def test_a_seed_is_a_whole_number(run):
    """Said by pytest in its own way."""
    result = run(SEEDED, "--attnlab-seed=-1")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--attnlab-seed -1: write a whole number*"])


HEAVY = """
import sys
import attnlab.testing.pytest_plugin
ours = sorted(m for m in sys.modules if m.split(".")[0] == "attnlab")
heavy = {"torch", "rich", "typer", "pydantic", "numpy"} & set(sys.modules)
print(ours, heavy)
"""


def test_loading_it_imports_next_to_nothing():
    """It is loaded with every run of pytest, also of projects that use nothing of it."""
    done = subprocess.run([sys.executable, "-c", HEAVY], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == (
        "['attnlab', 'attnlab.errors', 'attnlab.testing', 'attnlab.testing.pytest_plugin'] set()"
    ), done.stdout


def test_it_is_announced_to_pytest():
    """The entry point is in the project's description."""
    described = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    plugins = described["project"]["entry-points"]["pytest11"]
    assert plugins == {"attnlab": "attnlab.testing.pytest_plugin"}


# What the README shows was made with these two files.
LEAKS = """import torch
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self, dim=12, heads=3): super().__init__(); self.heads, self.qkv, self.o = heads, nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
    def forward(self, x):
        q, k, v = self.qkv(x).view(B := x.shape[0], x.shape[1], 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        s = q @ k.mT / 2
        return self.o((s.softmax(-1) @ v).transpose(1, 2).flatten(2))
"""  # noqa: E501
CAUSAL = """from attnlab.testing import assert_causal

from model import Net


def test_model():
    assert_causal(Net(), "x: B S D", sizes={"D": 12})
"""


def test_the_page_in_the_readme_is_what_is_shown(pytester, monkeypatch):
    """Each of its lines is one of the real page; dots stand for what is left out."""
    monkeypatch.setenv("COLUMNS", "80")
    pytester.makepyfile(model=LEAKS, test_model=CAUSAL)
    done = pytester.runpytest_subprocess(*PLUGIN, "--attnlab-seed", "403652227")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    sample = readme.partition("```\n>   assert_causal")[2].partition("```")[0]
    lines = [line for line in f">   assert_causal{sample}".splitlines() if line.strip(" .")]
    assert len(lines) > 8
    assert [line for line in lines if line not in [li.rstrip() for li in done.outlines]] == []
