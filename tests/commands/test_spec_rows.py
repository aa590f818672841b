"""What attnlab must cover has a command: positions, B1 to B10, and debugging, C1 to C14.

That the numbers are right is tested where they are computed:
tests/tracer/test_cost.py (C13), tests/tracer/views/test_compilation.py (C10).
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
    "plain.py": RIGHT.replace("scores.masked_fill(future, -torch.inf)", "scores"),
    "column.py": RIGHT.replace("softmax(-1)", "softmax(-2)"),
    "choice.py": RIGHT.replace("scores = q", "print(q.sum().item())\n        scores = q"),
    "crash.py": RIGHT.replace("k.transpose(-2, -1)", "k"),
}
EXTENSION = "attnlab.references.extension:HybridPositionalEncoding"
ROWS = {
    "B1 embeddings": ("explain padding-row", ["nn.init.normal_", "from_pretrained"]),
    "B2 tied weights": ("explain resize-vocabulary", ["A new table alone unties the head"]),
    "B3 sinusoids": ("position sinusoidal --length 60", ["sin(p w_i)", "sqrt(D/2)", "47,117"]),
    "B4 learned": ("position learned --length 40", ["W is trained", "N(0, 0.02^2)"]),
    "B5 longer": (f"trace {EXTENSION}", ["M=64", "106  where"]),
    "B6 a grid": ("position 2d --length 40", ["PE[y, x] = [PE of y | PE of x]"]),
    "B7 relative": ("position rope --vs alibi", ["k = 50  ✓ yes", "m_h |i - j|"]),
    "B8 by hand": ("lesson sinusoidal", ["0.84147", "0.54030", "0.99980", "-0.41615"]),
    "B9 analysis": ("position sinusoidal --length 51", ["one rotation M_k", "on distance alone"]),
    "B10 order": ("verify plain.py --promise unordered", ["✓ permutation-equivariance"]),
    "C1 shapes": ("trace right.py", ["13  matmul", "B H S S'", "scores = q @ k"]),
    "C1 up to a crash": ("trace crash.py", ["12  linear", "crash.py:13", "after 6 operations"]),
    "C2 presets": ("trace right.py --preset small", ["B=3 S=5 D=8 H=2", "16  flatten"]),
    "C3 sums of rows": ("trace right.py --attention", ["rows add up to 1", "no weight on later"]),
    "C4 beside a right one": ("diff scale.py right.py", ["scale.py:13", "2.236", "sqrt(hd)"]),
    "C5 the first NaN": ("trace empty.py", ["error line 15 softmax  nan-origin", "row [0, 0, 0]"]),
    "C5 a mask's infinity": ("trace right.py", ["nothing suspicious"]),
    "C6 the mask works": ("verify right.py", ["✓ causality ", "✓ batch-independence"]),
    "C6 or leaks": ("verify column.py", ["✗ causality", "column.py:16"]),
    "C7 switched off": ("ablate right.py", ["switched off", "what it broke", "head 0"]),
    "C8 gradients": ("trace right.py --backward", ["norm  shape  parameter", "qkv.weight"]),
    "C9 copies and views": ("trace right.py", ["non-contig"]),
    "C9 .T": ("trace turned.py", ["warning line 16 T  axes-reversed", ".mT swaps the last two"]),
    "C10 graphs": ("trace choice.py --compile", ["2 graphs, 1 place", "choice.py:13  Dynamo"]),
    "C11 time and memory": ("trace right.py --time --memory", ["time", "bytes", "kB", "us"]),
    "C12 from a symptom": ("triage empty.py --symptom nan", ["1. nan-origin  empty.py:15"]),
    "C13 cost": ("cost right.py --at S=4096", ["6*B*S*D**2 + 4*B*S**2*D", "1.615 G"]),
    "C14 snippets": ("snippets right.py --row 7", ['"qkv": (B, S, 3 * D),', "clip_grad"]),
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
