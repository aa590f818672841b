"""attnlab walk: which lines are known for what, and what is said of them."""

from __future__ import annotations

from pathlib import Path

import pytest

import attnlab
from attnlab.questions.walk import patterns, texts, walk

MODULE = """
import torch
from torch import nn
import torch.nn.functional as F

def rotate(x):
    a, b = x.chunk(2, -1)
    return torch.cat([-b, a], -1)  # rotate

class Block(nn.Module):
    def __init__(self, dim=48, heads=6):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(dim)  # not here
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)
        self.gate = nn.Linear(dim, dim)

    def forward(self, x):
        B, S, D = x.shape
        h = self.norm(x)  # norm
        q, k, v = self.qkv(h).chunk(3, -1)  # projection
        q = q.view(B, S, self.heads, -1)  # split
        q = q.transpose(1, 2)  # heads in front
        k = k.view(B, S, self.heads, -1).transpose(1, 2)  # split, heads in front
        v = v.view(B, S, self.heads, -1).transpose(1, 2)  # split, heads in front
        q = q.cos() * q + rotate(q) * q
        scores = q @ k.mT  # scores
        scores = scores / 8**0.5  # scale
        later = torch.ones(S, S, dtype=torch.bool).triu(1)
        scores = scores.masked_fill(later, -torch.inf)  # mask
        weights = scores.softmax(-1)  # weights
        mixed = F.dropout(weights, 0.0) @ v  # context
        mixed = mixed.transpose(1, 2).reshape(B, S, D)  # merge
        x = x + self.out(mixed)  # projection, residual
        gate = self.gate(x).softmax(-1)  # projection
        return x * gate
"""


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    torch = pytest.importorskip("torch")
    path = tmp_path_factory.mktemp("walk") / "block.py"
    path.write_text(MODULE)
    space = {"__name__": "block", "__file__": str(path)}
    exec(compile(MODULE, str(path), "exec"), space)
    block = space["Block"]()
    return attnlab.trace(block, torch.randn(2, 5, 48), dims="x: B S D").trace


def test_lines_are_known_for_what_they_are_there_for(trace):
    """By what flows into a softmax and out of it; a gate's softmax is no attention."""
    steps = {step.line: step for step in walk(trace)}
    for number, line in enumerate(MODULE.splitlines(), 1):
        code, _, said = line.partition("  # ")
        if number in steps and said != "not here":
            found = [name for name in steps[number].why if name != "activation"]
            assert sorted(found) == sorted(said.split(", ") if said else []), code


def test_a_line_that_runs_twice_is_walked_once(trace):
    """Its rows are told apart where their axes are; every pattern has its reason."""
    assert len({(step.file, step.line) for step in walk(trace)}) == len(walk(trace))
    assert {*patterns(trace).values()} <= texts()["why"].keys()


def test_the_walk_of_a_challenge_looks_as_it_did(shell, golden):
    golden("walk", shell("walk", "too-sharp").out)


def test_a_script_walks_too(shell):
    """Views, axes and costs by row."""
    said = shell("walk", "too-sharp", "--json")
    assert (said.code, said.json["outcome"]) == (0, "ok")
    rows = [row for step in said.json["steps"] for row in step["rows"]]
    assert {row["op"] for row in rows} > {"linear", "chunk", "softmax"}
    assert any(row["view"] for row in rows)
    assert any(row["flops"] for row in rows)


def test_a_line_says_what_breaks_without_it(shell):
    """By switching its parts off, one at a time."""
    Path("block.py").write_text(MODULE)
    said = shell("walk", "block.py:Block", "--input", "x: B S D", "--json")
    without = {step["source"].partition("  #")[0]: step["without"] for step in said.json["steps"]}
    mask = without["scores = scores.masked_fill(later, -torch.inf)"]
    assert len(mask) == 1
    assert mask[0].endswith("causality")
    assert any("residual" in text for text in without["x = x + self.out(mixed)"])


def test_what_cannot_be_walked_is_one_line(shell):
    assert shell("walk", "no-such").code == 2
    said = shell("walk", "too-sharp", "--quiz")
    assert (said.code, said.err.count("error: ")) == (2, 1)
    said = shell("walk", "crash-at-out-proj")
    assert said.code == 1
    assert "out_proj maps 8 features to 8" in said.out
    assert "line 31 (" not in said.out  # the cause of a puzzle
