"""`attnlab triage` from the command line: files, flags, comments, and what it refuses."""

import pytest

WRONG = """
import torch
from torch import nn

class Attention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        ahead = torch.ones_like(scores).triu(1).bool()
        scores.masked_fill(ahead, float("-inf"))
        return scores.softmax(-1) @ v
"""
RIGHT = WRONG.replace("        scores.masked", "        scores = scores.masked")


@pytest.fixture
def net(shell, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(text):
        (tmp_path / "net.py").write_text(text)

    return write


def test_the_cause_stands_first_with_line_evidence_and_experiment(shell, net):
    """Exit code 1, and a document that scripts can read."""
    net(WRONG)
    said = shell("triage", "net.py", "--json")
    first = said.json["suspicions"][0]
    assert (said.code, said.json["outcome"]) == (1, "found")
    assert (first["rank"], first["rule"], first["line"]) == (1, "result-dropped", 14)
    assert "masked_fill" in first["evidence"]
    assert first["experiment"]
    page = shell("triage", "net.py").out
    assert "1. result-dropped  net.py:14" in page
    assert "not looked at" in page


def test_a_right_file_says_what_was_looked_at(shell, net):
    """Never a bare ok."""
    net(RIGHT)
    said = shell("triage", "net.py")
    assert said.code == 0
    assert "nothing suspicious in what was looked at" in said.out
    assert "values were not compared with a reference" in " ".join(said.out.split())


def test_a_comment_and_a_flag_switch_a_rule_off(shell, net):
    """The comment on the line itself."""
    net(WRONG.replace('"-inf"))', '"-inf"))  # attnlab: ignore[result-dropped]'))
    assert "result-dropped" not in shell("triage", "net.py").out
    net(WRONG)
    assert "result-dropped" not in shell("triage", "net.py", "--ignore", "result-dropped").out
    assert "result-dropped" not in shell("triage", "net.py", "--only", "trace").out


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--symptom", "nam"), "Did you mean nan"),
        (("--only", "axes"), "trace, unused, property"),
        (("--ignore", "result-droped"), "Did you mean result-dropped"),
        (("--steps", "0"), "a whole number from 1"),
    ],
)
def test_a_word_that_does_not_exist_is_refused_with_the_nearest(shell, net, flags, says):
    """One line, before anything runs."""
    net(RIGHT)
    said = shell("triage", "net.py", *flags)
    assert said.code == 2
    assert says in said.err


def test_a_missing_file_is_refused(shell, net):
    """As by every command."""
    said = shell("triage", "nothing.py")
    assert said.code == 2
    assert "nothing.py: no such file" in said.err
