"""How much there is to practise: bases, bugs, tasks, and what the tasks lead to."""

from itertools import combinations, pairwise
from pathlib import Path

import pytest

from attnlab.catalogue.load import load, shipped_folder

CATALOGUE = load()
BUGS = [c for c in CATALOGUE.challenges if c.base and c.kind == "debug"]
# "Now make it ...": each step is what an interviewer asks after the one before.
LADDERS = {
    "causal and padded, cached, with few keys, in a window": """
        attention-from-scratch attention-with-a-cache one-key-for-all-heads a-window-that-rolls""",
    "stable, without a square, in half precision": """
        softmax-and-its-gradient attention-without-a-square attention-in-half-precision
        a-square-for-a-strip""",
    "positions, in half precision": """
        learned-positions-by-hand rotary-from-scratch rotary-in-half-precision
        t5-bias-from-scratch""",
}
# What a check finds that is right in float32, in one call, at the example's sizes.
ELSEWHERE = {
    *("dtype-parity", "long-positions", "cache-equals-full", "no-hidden-state", "checkpoint"),
    *("batch-independence", "exports", "non-contiguous-input", "train-mode", "device-parity"),
    *("buffer-not-parameter", "mask-form-parity", "extrapolation-contract"),
}


def code_lines(base):
    text = (shipped_folder() / base / "solution.py").read_text("utf-8")
    lines = (line.strip() for line in text.splitlines())
    return {line for line in lines if line and not line.startswith(("import ", "from "))}


def test_no_two_bases_are_alike():
    """Else a bug of the second would be found by memory: at most half of the lines are shared."""
    lines = {base: code_lines(base) for base in sorted({c.base for c in BUGS})}
    assert len(lines) >= 14
    shared = {
        (a, b): len(lines[a] & lines[b]) / min(len(lines[a]), len(lines[b]))
        for a, b in combinations(lines, 2)
    }
    assert max(shared.values()) <= 0.5, max(shared, key=lambda pair: shared[pair])


def test_there_are_bugs_of_every_level():
    """As many as asked of each, most of them in the middle."""
    least = {1: 10, 2: 22, 3: 22, 4: 11, 5: 5}
    counts = {level: sum(bug.level == level for bug in BUGS) for level in least}
    assert [level for level in least if counts[level] < least[level]] == []


def test_some_bugs_only_show_elsewhere():
    """In half precision, far out, at a second call, with a cache, after a checkpoint."""
    assert sum(bug.expected[0] in ELSEWHERE for bug in BUGS) >= 10
    assert len(list(Path(shipped_folder()).glob("*/*/decoys/*.toml"))) >= 10


@pytest.mark.parametrize(("kind", "least"), [("implement", 12), ("port", 6), ("cheaper", 6)])
def test_there_is_something_to_write(kind, least):
    """Of every kind of round that is not a search for bugs."""
    assert sum(c.kind == kind for c in CATALOGUE.challenges) >= least


@pytest.mark.parametrize("ladder", LADDERS)
def test_a_task_leads_to_the_next(ladder):
    """A pass names the step that makes it harder."""
    for name, following in pairwise(LADDERS[ladder].split()):
        assert CATALOGUE.find(name).then == following
