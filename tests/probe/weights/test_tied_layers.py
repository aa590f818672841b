"""Layers that are all alike are matched at once, whatever their weights are called."""

import pytest
from modules import hosted

from attnlab.candidate.host import LocalHost
from attnlab.probe.inputs.draw import Dice
from attnlab.probe.reference import FileReference
from attnlab.probe.weights.match import MatchContext, find_map
from attnlab.probe.weights.roles import Option, Piece, parse_name
from attnlab.probe.weights.tied_layers import tie_layers
from attnlab.records import Code, Contract, Input

CONTRACT = Contract(
    sizes={"B": 2, "S": 3, "D": 6},
    init={"width": "D"},
    inputs=(Input(name="x", axes=("B", "S", "D")),),
    output=("B", "S", "D"),
    vary=("B", "S", "D"),
)
HEAD = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n\n"
REFERENCE = (
    HEAD
    + """
class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.norm2 = nn.LayerNorm(width)
        self.w1 = nn.Linear(width, 2 * width, bias=False)
        self.w3 = nn.Linear(width, 2 * width, bias=False)
        self.w2 = nn.Linear(2 * width, width)

    def forward(self, x):
        x = self.norm1(x)
        return self.norm2(x + self.w2(F.silu(self.w1(x)) * self.w3(x)))

class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.ModuleList(Layer(width) for _ in range(3))
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)
"""
)
OTHER = (
    HEAD
    + """
class Glu(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Linear(width, 4 * width, bias=False)
        self.outer = nn.Linear(2 * width, width)

    def forward(self, x):
        a, b = self.inner(x).chunk(2, -1)
        return self.outer(F.silu(a) * b)

class Added(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return x + self.inner(x)

class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.after = nn.LayerNorm(width)
        self.blocks = nn.Sequential(*(
            nn.Sequential(nn.LayerNorm(width), Added(Glu(width)), nn.LayerNorm(width))
            for _ in range(3)))

    def forward(self, x):
        return self.after(self.blocks(x))
"""
)
WRONG = {
    "the halves the other way": ("F.silu(a) * b", "a * F.silu(b) * 1.1"),
    "the layers backwards": ("self.after(self.blocks(x))",
                             "self.after(nn.Sequential(*list(self.blocks)[::-1])(x))"),
    "a norm left out": ("self.after(self.blocks(x))", "self.blocks(x)"),
}  # fmt: skip


def found(text):
    reference = FileReference(Code(file="solution.py", text=REFERENCE, name="Net"), LocalHost())
    host = hosted(text, CONTRACT)
    return find_map(MatchContext(host, "Net", reference, CONTRACT, Dice(0)))


def test_three_layers_in_another_style_are_matched():
    """Norms before and after, a fused gate, wrappers with numbers: one choice for all layers."""
    entries = found(OTHER).entries
    assert entries is not None
    assert entries["blocks.2.0.weight"] == "layers.2.norm1.weight"
    assert entries["blocks.1.2.bias"] == "layers.1.norm2.bias"
    assert entries["blocks.0.1.inner.inner.weight"] == "cat(layers.0.w1.weight, layers.0.w3.weight)"


@pytest.mark.parametrize("name", WRONG)
def test_no_map_undoes_a_bug(name):
    """Layers in another order have another map at most layer by layer, which is not tried."""
    old, new = WRONG[name]
    assert old in OTHER
    assert found(OTHER.replace(old, new)).entries is None


def option(piece, expression, cost=0.0):
    return Option(cost, frozenset({piece}), expression)


def test_layers_are_tied_only_where_both_sides_have_as_many():
    """Two of ours and two of theirs make one choice; with three of ours each is a choice."""
    names = ("a.0.w", "a.1.w", "b.w")
    parts = tuple(Piece(n, n, (3,), parse_name(n), i) for i, n in enumerate(names))
    choices = {
        "x.0.g": [option(0, "a.0.w"), option(1, "a.1.w", 1.0), option(2, "b.w", 2.0)],
        "x.1.g": [option(1, "a.1.w"), option(0, "a.0.w", 1.0), option(2, "b.w", 2.0)],
        "y": [option(2, "b.w")],
    }
    tied = tie_layers(choices, parts)
    assert set(tied.choices) == {"x.0.g", "y"}
    assert [o.pieces for o in tied.choices["x.0.g"]] == [frozenset({0, 1})]
    assert tied.expand({"x.0.g": "a.0.w", "y": "b.w"})["x.1.g"] == "a.1.w"
    more = {**choices, "x.2.g": choices["x.1.g"]}
    assert tie_layers(more, parts).choices == more
