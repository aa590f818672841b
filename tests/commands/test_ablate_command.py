"""attnlab ablate: the table, its findings and exit codes for files of one's own."""

import json
from pathlib import Path

import pytest

NET = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, dim, steps=1):
        super().__init__()
        self.steps = steps
        self.qkv = nn.Linear(dim, 3 * dim)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        mask = torch.ones(x.size(1), x.size(1)).triu(self.steps).bool()
        return x + (q @ k.mT).masked_fill(mask, float("-inf")).softmax(-1) @ v
"""


@pytest.fixture
def ablate(shell):
    def run(text, *flags):
        Path("net.py").write_text(text, encoding="utf-8")
        return shell("ablate", "net.py", *flags)

    return run


def test_the_table_says_what_each_part_does(ablate):
    """The mask keeps it causal; nothing is wrong, so the exit code is 0."""
    said = ablate(NET)
    assert said.code == 0
    assert "with all parts on: causal" in said.out
    assert next(line.split() for line in said.out.splitlines() if "causality" in line)[:2] == [
        "mask",
        "15",
    ]


def test_a_mask_without_effect_is_a_finding(ablate):
    """Exit code 1, the line of the mask, in JSON as well."""
    said = ablate(NET, "--init", "steps=99", "--json")
    assert said.code == 1
    told = json.loads(said.out)
    found = [part for part in told["report"]["parts"] if part["is_finding"]]
    assert (told["format"], told["outcome"]) == (1, "found")
    assert [(part["kind"], part["line"], part["change"]) for part in found] == [("mask", 15, 0.0)]
    assert told["next"] == "look at net.py:15"


def test_what_has_no_parts_cannot_be_compared(ablate):
    """Exit code 3, and the reason."""
    said = ablate(
        "from torch import nn\n\nclass Net(nn.Linear):\n    pass\n",
        "--init",
        "in_features=4, out_features=4",
        "--input",
        "x: 2 3 4",
    )
    assert said.code == 3
    assert "no mask, norm, residual" in said.out
