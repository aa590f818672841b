"""attnlab verify: promises, properties and exit codes for files of one's own."""

from pathlib import Path

import pytest

MODEL = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, dim, fill=float("-inf")):
        super().__init__()
        self.fill = fill
        self.pos = nn.Parameter(torch.zeros(64, dim))
        self.qkv = nn.Linear(dim, 3 * dim)

    def forward(self, x):
        q, k, v = self.qkv(x + self.pos[: x.size(1)]).chunk(3, -1)
        scores = q @ k.mT
        mask = torch.ones(x.size(1), x.size(1)).triu(1).bool()
        return scores.masked_fill(mask, self.fill).softmax(-1) @ v
"""
DEMO = (
    MODEL
    + """
if __name__ == "__main__":
    make = lambda anything: Net(12, fill=0.0)
    print(make(None)(torch.randn(3, 6, 12)).shape)
"""
)


@pytest.fixture
def verify(shell):
    def run(text, *flags, target="net.py"):
        Path("net.py").write_text(text, encoding="utf-8")
        return shell("verify", target, *flags)

    return run


def test_a_right_module_passes(verify):
    """The page says what is promised and why, and what was not looked at."""
    said = verify(MODEL)
    assert said.code == 0
    assert "causal" in said.out
    assert "net.py:17 masks with a triangle" in said.out
    assert "no value was compared with a reference" in said.out


def test_a_broken_property_fails(verify):
    """Exit code 1, the line, and a next step that can be pasted."""
    said = verify(MODEL, "--init", "fill=0.0")
    assert said.code == 1
    assert "net.py:17" in said.out
    assert "next: look at net.py:17, then attnlab verify net.py --init fill=0.0" in said.out


def test_a_promise_can_be_taken_back(verify):
    """A triangle that means something else is no promise."""
    assert verify(MODEL, "--init", "fill=0.0", "--not", "causal").code == 0


def test_the_document_has_the_keys_of_the_contract(verify):
    """Scripts rely on them."""
    said = verify(MODEL, "--init", "fill=0.0", "--json")
    document = said.json
    assert document["format"] == 1
    assert document["outcome"] == "failed"
    found = {p["id"]: p["outcome"] for p in document["properties"]}
    assert found["causality"] == "broken"
    assert set(found.values()) <= {"holds", "broken", "not-applicable", "not-checked"}
    assert {p["name"] for p in document["promises"]} == {"causal", "ordered"}


def test_a_demo_feeds_the_module(verify):
    """Where the constructor cannot be guessed, the demo of the file builds and feeds it."""
    said = verify(DEMO.replace("dim, fill", "anything, dim, fill").replace("Net(12", "Net(0, 12"))
    assert said.code == 1
    assert "causality" in said.out


def test_a_crash_is_told_with_its_place(verify):
    """Nothing can be looked at where the first call raises."""
    said = verify(MODEL.replace("q @ k.mT", "q @ k"))
    assert said.code == 1
    assert "net.py:15: RuntimeError" in said.out


@pytest.mark.parametrize(("flag", "name"), [("--promise", "casual"), ("--not", "causalty")])
def test_an_unknown_name_is_refused(verify, flag, name):
    """With the nearest name that there is."""
    said = verify(MODEL, flag, name)
    assert said.code == 2
    assert "causal" in said.err


MIXING = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.attention = nn.MultiheadAttention(dim, 3)

    def forward(self, x):
        return self.attention(x, x, x)[0]
"""


def test_axes_that_were_typed_are_believed(verify):
    """Guessed ones are not: (S, B, D) is as good a reading, and the message says how to tell."""
    said = verify(MIXING)
    assert said.code == 0
    assert "--promise sequence-first or batch-first" in " ".join(said.out.split())
    assert verify(MIXING, "--input", "x: B S D").code == 1
    assert verify(MIXING, "--promise", "batch-first").code == 1
    assert verify(MIXING, "--input", "x: S B D").code == 0
