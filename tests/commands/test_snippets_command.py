"""attnlab snippets: what is written runs, as one script and piece by piece."""

import io
import re
import runpy
import sys
from pathlib import Path

import pytest

NET = """
import torch
from torch import nn

class Config:
    def __init__(self, n_embd, n_head=3):
        self.n_embd, self.n_head = n_embd, n_head

class Net(nn.Module):
    def __init__(self, config, vocab_size=50):
        super().__init__()
        self.h = config.n_head
        self.tok = nn.Embedding(vocab_size, config.n_embd)
        self.qkv = nn.Linear(config.n_embd, 3 * config.n_embd)
    def forward(self, ids, mask=None):
        x = self.tok(ids)
        B, S, D = x.shape
        q, k, v = self.qkv(x).view(B, S, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        later = torch.ones(S, S, dtype=torch.bool).triu(1)
        weights = (q @ k.mT).masked_fill(later, float("-inf")).softmax(-1)
        return (weights @ v).transpose(1, 2).flatten(2)

class Leaky(Net):
    def forward(self, ids):
        x = self.tok(ids)
        return x - x.mean(1, keepdim=True)

class Broken(Net):
    def forward(self, ids):
        return self.qkv(self.qkv(self.tok(ids)))

class Experts(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(dim, dim) for _ in range(2))
        self.out = nn.Linear(dim, dim)
    def forward(self, x):
        y = x.flatten(0, 1)
        return self.out(torch.cat([self.experts[0](y[:3]), self.experts[1](y[3:])]).view_as(x))

class Frozen(nn.Module):
    def forward(self, x, cache, scale=2):
        return x * scale + cache[0].sum(1, keepdim=True)

class Alone(nn.Module):
    def forward(self):
        return torch.ones(3).softmax(0)

def attend(q, k, mask):
    scores = (q @ k.mT).masked_fill(mask, float("-inf"))
    return scores.softmax(-1) @ k
"""
PAIR = ("--input", "x: B S D", "--input", "cache: tuple(B T D, B T D)", "--input", "scale = 3")
THREE = ("--input", "q: B S D", "--input", "k: B S D", "--input", "mask: S S bool forbids")


@pytest.fixture
def snippets(shell):
    def write(name, *flags, file="net.py"):
        path = Path(file)
        path.parent.mkdir(exist_ok=True)
        path.write_text(NET)
        said = shell("snippets", f"{file}:{name}", *flags, "--json")
        return {s["id"]: s["code"] for s in said.json["snippets"]} if said.code == 0 else said

    return write


@pytest.fixture
def execute(monkeypatch):
    """Run snippets one after the other, as in one script."""

    def run(codes):
        monkeypatch.syspath_prepend(str(Path.cwd()))
        monkeypatch.setattr(sys, "stdin", io.StringIO("p 'here', scores.shape\nc\n"))
        for name in ("net", "my-net"):
            sys.modules.pop(name, None)
        space = {"__name__": "__main__"}
        for name, code in codes.items():
            exec(compile(code, f"<{name}>", "exec"), space)
        return space

    return run


def test_all_of_them_run(snippets, execute):
    """A config object, ids and an argument that is left out; the shapes have names (row C14)."""
    codes = snippets("Net")
    assert list(codes) == [
        *("setup", "shapes", "nan", "clip", "profile"),
        *("test_finite", "test_deterministic", "test_batch", "test_causal", "debug", "run"),
    ]
    assert "model = Net(config=Config(n_embd=D" in codes["setup"]
    assert '"qkv": (B, S, 3 * D),' in codes["shapes"]
    assert len(re.findall(r"    test_\w+\(\)", codes["run"])) == 6
    execute(codes)


def test_the_script_is_a_file_of_tests(shell, monkeypatch):
    """pytest imports it without running anything else: no debugger waits for an answer."""
    Path("net.py").write_text(NET)
    Path("look.py").write_text(shell("snippets", "net.py:Net").out)
    monkeypatch.syspath_prepend(str(Path.cwd()))
    sys.modules.pop("net", None)
    monkeypatch.setattr("pdb.Pdb", None)
    space = runpy.run_path("look.py")
    tests = [name for name in space if name.startswith("test_")]
    assert len(tests) == 6
    for name in tests:
        space[name]()


def test_the_script_stops_in_the_debugger_where_weights_are_made(snippets, execute, capsys):
    """Of a file whose name no import statement takes, in another folder; a function has neither
    hooks nor training, and a row of the user's choice is stopped at."""
    codes = snippets("attend", *THREE, "--row", "1", file="sub/my-net.py")
    assert {"shapes", "nan", "clip"}.isdisjoint(codes)
    line = 2 + NET.splitlines().index('    scores = (q @ k.mT).masked_fill(mask, float("-inf"))')
    assert (
        f", {line})"
        in snippets("attend", *THREE, "--line", str(line), file="sub/my-net.py")["debug"]
    )
    execute(codes)
    out = capsys.readouterr().out
    assert "-> scores = " in out
    assert "my-net.py" in out


def test_how_many_rows_an_expert_gets_is_not_asserted(snippets, execute):
    """It depends on values: layers of a list whose shapes differ are left out."""
    codes = snippets("Experts", "--input", "x: B S D")
    assert "experts" not in codes["shapes"]
    assert '"out": (' in codes["shapes"]
    execute(codes)


def test_a_container_and_a_value_are_passed(snippets, execute):
    """Without parameters there is no step of training."""
    codes = snippets("Frozen", *PAIR)
    assert "clip" not in codes
    assert '"cache": (torch.randn(B, T, D), torch.randn(B, T, D)),' in codes["setup"]
    execute(codes)


def test_a_module_without_inputs_is_set_up_too(snippets, execute):
    """It has no sizes either, and the rest builds on the setup."""
    codes = snippets("Alone")
    assert "setup" in codes
    execute(codes)


def test_only_properties_that_hold_become_tests(snippets):
    """A module that looks ahead has no test that it does not."""
    codes = snippets("Leaky")
    assert "test_batch" in codes
    assert "test_causal" not in codes


@pytest.mark.parametrize(
    ("name", "test", "fault"),
    [
        (
            "shapes",
            "test_shapes_of_submodules",
            lambda net: setattr(net, "qkv", type(net.qkv)(12, 35)),
        ),
        (
            "nan",
            "test_nothing_is_nan_or_infinite",
            lambda net: net.qkv.weight.data.fill_(float("nan")),
        ),
    ],
)
def test_what_is_asserted_can_fail(snippets, execute, name, test, fault):
    """Another width and a weight that is NaN are named with their module."""
    codes = snippets("Net")
    space = execute({"setup": codes["setup"]})
    fault(space["model"])
    exec(codes[name], space)
    with pytest.raises((AssertionError, FloatingPointError), match="qkv") as error:
        space[test]()
    assert name == "shapes" or "NaN" in str(error.value)


def test_of_a_module_that_crashes_only_the_stop_is_written(snippets):
    """Nothing else would run; the debugger stops before the line that raises."""
    codes = snippets("Broken")
    assert list(codes) == ["setup", "debug", "run"]
    line = 1 + NET.splitlines().index("        return self.qkv(self.qkv(self.tok(ids)))")
    assert f'net.py", {line})' in codes["debug"]


def test_the_whole_screen_is_one_script(shell):
    """Titles are comments, in a pipe and on a screen, and no line is wrapped."""
    Path("net.py").write_text(NET)
    said = shell("snippets", "net.py:Net")
    compile(said.out, "look.py", "exec")
    assert max(map(len, said.out.splitlines())) > 80


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("net.py:Net", "--row", "999"), "--row 999: there is no such row"),
        (("net.py:Net", "--line", "1"), "--line 1: no operation ran there"),
        (("net.py:Net", "--row", "x"), "--row x: the number of a row"),
        (("net.py:Net", "--only", "nam"), 'there is no "nam"'),
        (("net.py:Nut",), "defines no Nut"),
        (
            ("net.py:Frozen", *PAIR, "--sizes", "S=999999999999"),
            "takes 96 TB, and a run gets 2.15 GB",
        ),
        (("gone.py",), "gone.py"),
    ],
)
def test_bad_input_is_refused_in_a_line(shell, flags, words):
    """With what there is, and no traceback."""
    Path("net.py").write_text(NET)
    said = shell("snippets", *flags)
    assert said.code == 2
    assert words in said.err
    assert "Traceback" not in said.err
