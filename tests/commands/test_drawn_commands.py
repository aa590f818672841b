"""Challenges made for one user: `attnlab new` and `attnlab sabotage`."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnlab.mutation_testing.drawing import unique_edit

MODULE = """import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, embed_dim: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads, self.head_dim = num_heads, embed_dim // num_heads
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim)
        self.out = nn.Linear(embed_dim, embed_dim)

    def forward(self, x):
        B, S, D = x.shape
        q, k, v = (
            t.view(B, S, self.num_heads, self.head_dim).transpose(1, 2)
            for t in self.qkv(x).chunk(3, dim=-1)
        )
        scores = q @ k.transpose(-2, -1) / self.head_dim**0.5
        weights = scores.softmax(dim=-1)
        return self.out((weights @ v).transpose(1, 2).reshape(B, S, D))
"""


def test_a_drawn_challenge_works_like_any_other(shell):
    """It is started, rejected, helped with, and passed once its change is undone."""
    drawn = shell("new", "--seed", "5", "--topic", "position", "--json")
    assert drawn.code == 0, drawn.err
    name = drawn.json["slug"].partition("/")[2]
    assert shell("new", "--seed", "5", "--topic", "position", "--json").json == drawn.json
    shell("start", name)
    assert shell("grade", name).code == 1
    assert "hint 1 of 3" in shell("hint", name).out
    solution = shell("solution", name, "--yes", "--json").json["solution"]
    Path(f"{name}.py").write_text(solution, encoding="utf-8")
    assert shell("grade", name, "--json").json["outcome"] == "passed"
    assert any(c["slug"] == drawn.json["slug"] for c in shell("list", "--json").json["challenges"])


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--topic", "masks"), "there is no such topic"),
        (("--level", "9"), "a whole number from 1 to 4"),
        (("--bugs", "none"), "a whole number from 1 to 3"),
        (("--seed", "-1"), "a whole number from 0"),
    ],
)
def test_nonsense_is_refused_in_a_line(shell, args, said):
    """Nothing is drawn by flags that mean nothing."""
    refused = shell("new", *args)
    assert refused.code == 2
    assert said in refused.err


def test_a_program_is_drawn_as_a_round(shell):
    """The topic programs writes a folder, as start does."""
    assert shell("new", "--topic", "programs", "--seed", "3").code == 0
    assert any(path.is_dir() for path in Path().iterdir())


def test_your_own_code_with_a_bug_is_graded_against_the_original(shell):
    """The original stays as it is, the copy is rejected, and passes once it is put back."""
    Path("my_net.py").write_text(MODULE, encoding="utf-8")
    made = shell("sabotage", "my_net.py", "--seed", "1", "--json")
    assert made.code == 0, made.err
    assert Path("my_net.py").read_text(encoding="utf-8") == MODULE
    copy = Path("my_net-sabotaged/my_net.py")
    mark, _, text = copy.read_text(encoding="utf-8").partition("\n")
    assert mark == f"# attnlab: {made.json['slug']}"
    assert text != MODULE
    assert shell("grade", str(copy)).code == 1
    again = shell("sabotage", "my_net.py", "--seed", "1")
    assert again.code == 2
    assert "already exists" in again.err
    copy.write_text(f"{mark}\n{MODULE}", encoding="utf-8")
    assert shell("grade", str(copy), "--json").json["outcome"] == "passed"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (MODULE.replace("chunk(3", "chunk(2"), "does not run as it is: my_net.py:15"),
        (MODULE.replace("/ self", "+ torch.rand(()) / self"), "not graded as equal to itself"),
    ],
    ids=["crashes", "random"],
)
def test_what_cannot_be_graded_is_not_sabotaged(shell, text, said):
    """A module that fails by itself, or differs from call to call, hides no bug."""
    Path("my_net.py").write_text(text, encoding="utf-8")
    refused = shell("sabotage", "my_net.py")
    assert refused.code == 2
    assert said in refused.err
    assert not Path("my_net-sabotaged").exists()


def test_an_edit_stands_once_in_the_right_text():
    """Lines that repeat take as many around them as tell them apart."""
    right = "a\nx\nb\nx\nc\n"
    old, new = unique_edit(right, "a\nx\nb\ny\nc\n") or ("", "")
    assert right.count(old) == 1
    assert right.replace(old, new) == "a\nx\nb\ny\nc\n"
