"""`attnlab mutate`: a score, survivors, and an exit code for scripts."""

from __future__ import annotations

from pathlib import Path

import pytest


def test_survivors_are_a_finding(shell):
    """With survivors the exit code is 1; --json is one document with the score."""
    Path("double.py").write_text("def double(x):\n    return x + x\n", encoding="utf-8")
    test = "import double\n\ndef test_it():\n    assert double.double(2) > 0\n"
    Path("test_double.py").write_text(test, encoding="utf-8")
    found = shell("mutate", "double.py", "--json")
    assert found.code == 1
    document = found.json
    assert document["format"] == 1
    assert document["survived"] == len(document["survivors"]) > 0
    assert 0 < document["score"] < 1
    assert document["survivors"][0]["line"] == 2


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("gone.py",), "gone.py: no such file"),
        (("net.py",), "no tests lie near net.py"),
        (("net.py", "--tests", "nowhere"), "no such file or folder"),
        (("net.py", "--tests", "net.py", "--sample", "0"), "a whole number from 1 to 100"),
        ((), "attnlab mutate my_model.py --tests tests/"),
    ],
)
def test_nonsense_is_refused_in_a_line(shell, args, said):
    """Nothing runs where it is not clear what is meant."""
    Path("net.py").write_text("def f():\n    return 1\n", encoding="utf-8")
    refused = shell("mutate", *args)
    assert refused.code == 2
    assert said in refused.err
