"""attnlab walk: which lines are known for what, and what is said of them."""

from __future__ import annotations

from math import prod
from pathlib import Path

import pytest

import attnlab
from attnlab.catalogue.load import load
from attnlab.questions.material import Material
from attnlab.questions.walk import patterns, texts, walk
from attnlab.records.trace import Trace

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
def traced(tmp_path_factory):
    torch = pytest.importorskip("torch")

    def run(text):
        path = tmp_path_factory.mktemp("walk") / "block.py"
        path.write_text(text)
        space = {"__name__": "block", "__file__": str(path)}
        exec(compile(text, str(path), "exec"), space)
        block = space["Block"]()
        return attnlab.trace(block, torch.randn(2, 5, 48), dims="x: B S D").trace

    return run


@pytest.fixture(scope="module")
def trace(traced):
    return traced(MODULE)


@pytest.fixture(scope="module")
def roles_of(traced):
    """The lines of a text that ran, what their comments say of them, and what the walk says."""

    def read(text):
        steps = {step.line: step for step in walk(traced(text))}
        for number, line in enumerate(text.splitlines(), 1):
            code, _, said = line.partition("  # ")
            if number in steps and said != "not here":
                yield code, said, [*steps[number].why]

    return read


def test_lines_are_known_for_what_they_are_there_for(roles_of):
    """By what flows into a softmax and out of it; a gate's softmax is no attention."""
    for code, said, found in roles_of(MODULE):
        assert sorted(found) == sorted(said.split(", ") if said else []), code


SEVERAL = """
import torch
from torch import nn
import torch.nn.functional as F

class Block(nn.Module):
    def __init__(self, dim=48, heads=6):
        super().__init__()
        self.heads, self.gain, self.table = heads, nn.Parameter(torch.ones(8)), torch.randn(5, 48)
        self.wq, self.wk, self.wv, self.up, self.w2 = (nn.Linear(dim, dim) for _ in range(5))

    def forward(self, x):
        B, S, D = x.shape
        k, v = self.wk(x), self.wv(x)  # projection
        y = F.scaled_dot_product_attention(self.wq(x), k, v)  # projection, attention
        x = x + self.w2(F.gelu(self.up(y)))  # projection, activation, residual
        x = self.w2(F.silu(self.up(x)) * self.wk(x))  # projection, gate
        x = x + self.table.to(x)
        x = x + self.table.expand_as(x)
        q = self.wq(x).view(B, S, self.heads, -1)  # projection, split
        q = q.transpose(1, 2)  # heads in front
        features = F.relu(q) + 1
        k = q * self.gain
        folded = k.reshape(B * self.heads, S, -1)
        k = folded.view(B, self.heads, S, -1)
        scores = F.linear(q, k[0, 0])
        scores = 3 * torch.tanh(q @ k.mT / 8**0.5 / 3)  # scores, scale
        e = scores.exp()
        weights = e / e.sum(-1, keepdim=True)  # weights
        out = (weights @ features).transpose(1, 2).reshape(B, S, D)  # context, merge
        q = q.transpose(1, 2)
        pairs = torch.cat([-out, out], -1)
        return out
"""


def test_a_line_with_several_operations_has_the_roles_of_each(roles_of):
    """A sum with a table is no residual, a feature map no activation, folding no merge, and a cap
    or a gain no scale."""
    for code, said, found in roles_of(SEVERAL):
        assert sorted(found) == sorted(said.split(", ") if said else []), code


def test_what_is_told_of_a_line_is_so_in_its_numbers(worker):
    """Weights are shares, a scale is one number, heads are cut from one axis, and no fused
    attention passes for a projection."""
    folders = {f.name: f for f in load().folders}
    for name in ("bounded-scores", "shifted-windows", "shifted-norms"):
        for piece in Material(load()).of(folders[name], "piece"):
            ops = worker.run_job(piece.trace_job(0)).trace.ops
            known = patterns(Trace(ops=ops))
            for op in ops:
                said, start = known.get(op.index), ops[op.parents[0]] if op.parents else op
                if said == "weights":
                    assert op.min >= 0, op
                    assert op.max <= 1.0001, op
                if said == "scale":
                    assert op.max / start.max == pytest.approx(op.min / start.min), op
                if said in ("split", "merge"):
                    assert prod(op.shape) == prod(start.shape), op
                assert (op.op == "scaled_dot_product_attention") == (said == "attention"), op


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
