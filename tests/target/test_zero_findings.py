"""What the text of a file says of weights that begin at zero."""

import pytest

from attnlab.target.source_findings import source_findings

KIND = """
class Adapter(nn.Module):
    def __init__(self, base, r):
        super().__init__()
        self.a = {a}
        self.b = {b}
        {fill}

    def forward(self, x):
        return {out}
"""
EMPTY = "nn.Parameter(torch.empty(r, base.in_features))"
ZEROS = "nn.Parameter(torch.zeros(base.out_features, r))"
LAYER = "nn.Linear(base.in_features, r, bias=False)"
FILLED = "nn.init.zeros_(self.a); nn.init.constant(self.x)\n        self.b.data.zero_()"
BOTH = "nn.init.zeros_(self.a.weight)\n        nn.init.zeros_(self.b.weight)"
OUT = "base(x) + (x @ self.a.t() @ self.b.t()) * self.scale"


@pytest.mark.parametrize(
    ("a", "b", "fill", "out", "lines"),
    [
        (ZEROS, ZEROS, "pass", OUT, [5]),
        (EMPTY, EMPTY, FILLED, OUT, [7]),
        (ZEROS, EMPTY, "nn.init.zeros_(self.b)", "F.linear(F.linear(x, self.a), self.b)", [5]),
        (LAYER, LAYER, BOTH, "x + self.b(self.drop(self.a(x)))", [8]),
        (ZEROS, ZEROS, "nn.init.normal_(self.a)", OUT, []),
        (EMPTY, ZEROS, "nn.init.kaiming_uniform_(self.a)", OUT, []),
        (ZEROS, ZEROS, "pass", "x @ (self.a + self.b)", []),
        (ZEROS, ZEROS, "pass", "F.linear(x, self.a, self.b)", []),
        (LAYER, LAYER, BOTH, "self.b(self.norm(x) * (1 + self.a(c)))", []),
        (LAYER.replace(", bias=False", ""), LAYER, BOTH, "self.b(self.a(x))", []),
    ],
)
def test_of_two_factors_one_is_drawn(a, b, fill, out, lines):
    """Where both begin at zero, the gradient of each is a multiple of the other; a sum, a bias or
    a shift is no such factor."""
    text = KIND.format(a=a, b=b, fill=fill, out=out)
    found = [f for f in source_findings(text, "net.py") if f.rule == "initialization"]
    assert [f.line for f in found] == lines
