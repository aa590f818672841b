"""Every snippet of the solutions of bases runs: modules that no test here was made for."""

from __future__ import annotations

import io
import sys
import tomllib
from pathlib import Path

import pytest

CHALLENGES = Path(__file__).parents[3] / "challenges"
# Its cache keeps the graph of the call before, so that it cannot be trained on twice.
KEEPS_GRAPH = "room-made-once"
CASES = [p for p in sorted(CHALLENGES.glob("*/*/base.toml")) if p.parent.name != KEEPS_GRAPH]


@pytest.mark.parametrize("case", CASES, ids=[p.parent.name for p in CASES])
def test_snippets_of_a_base(shell, case: Path, monkeypatch):
    """In one namespace, one after the other, as in a script (spec row C14)."""
    name = tomllib.loads(case.read_text())["class"]
    Path("net.py").write_text((case.parent / "solution.py").read_text())
    said = shell("snippets", f"net.py:{name}", "--case", str(case), "--json")
    if said.code:
        assert "the constructor takes no" in said.out  # what a case of another class says
        pytest.skip("the solution is built in another way")
    sys.modules.pop("net", None)
    monkeypatch.syspath_prepend(str(Path.cwd()))
    monkeypatch.setattr(sys, "stdin", io.StringIO("c\n"))
    space: dict[str, object] = {"__name__": "__main__"}
    codes = {s["id"]: s["code"] for s in said.json["snippets"]}
    assert {"setup", "profile", "debug", "run"} <= set(codes)
    for id_, code in codes.items():
        exec(compile(code, f"<{id_}>", "exec"), space)
