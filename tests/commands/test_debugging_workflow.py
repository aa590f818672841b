"""Each technique of a debugging session has a command: C1 to C14.

C6, C8, C10, C13 and C14 have test files of their own; what C7 asks has no command yet.
"""

import pytest

RIGHT = """import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim=8, heads=2):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)
        self.heads = heads

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        weights = scores.masked_fill(future, -torch.inf).softmax(-1)
        return (weights @ v).transpose(1, 2).flatten(2)
"""
FILES = {
    "right.py": RIGHT,
    "scale.py": RIGHT.replace("** 0.5", "** 1.0"),
    "empty.py": RIGHT.replace("triu(1)", "triu(0)"),
    "turned.py": RIGHT.replace("flatten(2)", "flatten(2).T"),
    "crash.py": RIGHT.replace("k.transpose(-2, -1)", "k"),
}
ROWS = {
    "C1 shapes": ("trace right.py", ["13  matmul", "B H S S'", "scores = q @ k"]),
    "C1 up to a crash": ("trace crash.py", ["12  linear", "crash.py:13", "after 6 operations"]),
    "C2 presets": ("trace right.py --preset small", ["B=3 S=5 D=8 H=2", "16  flatten"]),
    "C3 sums of rows": ("trace right.py --attention", ["rows add up to 1", "no weight on later"]),
    "C4 beside a right one": ("diff scale.py right.py", ["scale.py:13", "2.236", "sqrt(hd)"]),
    "C5 the first NaN": ("trace empty.py", ["error line 15 softmax  nan-origin", "row [0, 0, 0]"]),
    "C5 a mask's infinity": ("trace right.py", ["nothing suspicious"]),
    "C9 copies and views": ("trace right.py", ["non-contig"]),
    "C9 .T": ("trace turned.py", ["warning line 16 T  axes-reversed", ".mT swaps the last two"]),
    "C11 time and memory": ("trace right.py --time --memory", ["time", "bytes", "kB", "us"]),
    "C12 from a symptom": ("triage empty.py --symptom nan", ["1. nan-origin  empty.py:15"]),
}


@pytest.mark.parametrize("row", ROWS)
def test_a_technique_has_its_command(row, shell, tmp_path, monkeypatch):
    """What the row asks for is on the page, with line, axes and value."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    command, told = ROWS[row]
    page = shell(*command.split()).out
    assert [text for text in told if text not in page] == [], page
