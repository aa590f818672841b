"""The faults that `python -m benchmarks.faults` seeds: each still has its place."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FAULTS = sorted(Path(__file__).parent.glob("*.toml"))


@pytest.mark.parametrize("path", FAULTS, ids=lambda path: path.stem)
def test_a_fault_has_its_place(path):
    """Its text stands in its file exactly once, and its tests exist."""
    fault = tomllib.loads(path.read_text(encoding="utf-8"))
    assert (ROOT / fault["file"]).read_text(encoding="utf-8").count(fault["old"]) == 1
    assert fault["new"] != fault["old"]
    assert fault["breaks"].endswith(".")
    assert all((ROOT / test).exists() for test in fault["tests"])


def test_there_are_forty_of_them():
    """As many as were caught before the rooms were rebuilt."""
    assert len(FAULTS) >= 40
