"""`attnlab lesson`: no torch, no worker."""

import subprocess
import sys


def test_lists_the_lessons(shell):
    """Without a name."""
    said = shell("lesson")
    assert said.code == 0
    assert said.out.startswith("attention  ")
    assert shell("lesson", "--json").json["lessons"][0]["id"] == "attention"


def test_teaches_one(shell):
    """All of it, one step of it, and as a document."""
    assert "0.84147     0.54030     0.01000     0.99995" in shell("lesson", "sinusoidal").out
    said = shell("lesson", "sinusoidal", "--step", "2")
    assert said.out.startswith("2  A frequency for each pair")
    assert len(shell("lesson", "sinusoidal", "--json").json["steps"]) == 10


def test_refuses_what_there_is_not(shell):
    """An unknown lesson or step: exit 2 and one line."""
    said = shell("lesson", "sinusodal")
    assert (said.code, said.err.splitlines()[0]) == (2, 'error: no lesson is called "sinusodal"')
    for step in ("0", "11", "x", "-1", "1.5", "9" * 5000):
        said = shell("lesson", "sinusoidal", "--step", step)
        assert said.code == 2
        assert "a number from 1 to 10 is needed" in said.err
    assert shell("lesson", "x", "--json").json["outcome"] == "refused"


def test_is_instant():
    """Neither torch nor pydantic is imported for it."""
    code = (
        "import sys; from attnlab.cli import run; run(['lesson', 'sinusoidal']);"
        "sys.exit(any(name in sys.modules for name in ('torch', 'pydantic')))"
    )
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, check=False)
    assert done.returncode == 0
