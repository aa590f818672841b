"""The fit stage: inputs that a forward runs with, found by trying."""

from textwrap import dedent

import pytest

from attnlab.candidate.host import LocalHost, checked_answer
from attnlab.grading.example_run import surroundings
from attnlab.grading.fit_stage import fit_inputs
from attnlab.records import Limits
from attnlab.target.command_line import TraceCommand
from attnlab.target.fitted import guessed_job

PICTURES = """
class Detector(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.layer = nn.Linear(width, width)
    def forward(self, features, pos):
        memory = features.flatten(2).transpose(1, 2) + pos.flatten(2).transpose(1, 2)
        return self.layer(memory)
"""
COLUMNS = """
class Table(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.numbers = nn.Linear(1, width)
        self.kinds = nn.Embedding(3, width)
    def forward(self, x_num, x_cat):
        columns = [self.numbers(x_num[:, i : i + 1]) for i in range(4)]
        columns += [self.kinds(x_cat[:, i]) for i in range(2)]
        return torch.stack(columns, 1)
"""
PAIRED = """
class Pairs(nn.Module):
    def __init__(self, vocab_size=50, embed_dim=48, joint=32):
        super().__init__()
        self.words = nn.Embedding(vocab_size, embed_dim)
        self.out = nn.Linear(embed_dim, joint)
    def forward(self, image_features, text):
        return self.out(self.words(text).mean(1)) @ image_features.t()
"""
PATCHES = """
class Net(nn.Module):
    def __init__(self, size=16, chans=1, width=24):
        super().__init__()
        self.tokens = nn.Linear(chans * 16, width)
    def forward(self, img):
        return self.tokens(F.unfold(img, 4, stride=4).mT)
"""
EDGES = """
class Graph(nn.Module):
    def __init__(self, node_dim=10, edge_dim=5, dim=24):
        super().__init__()
        self.nodes, self.edges = nn.Linear(node_dim, dim), nn.Linear(edge_dim, dim)
    def forward(self, nodes, edge):
        b, n, _ = nodes.shape
        x = self.nodes(nodes)
        both = self.edges(edge).view(b, n, n, 4, 6).sum(2) + x.view(b, n, 4, 6)
        return both.flatten(2)
"""
SAMPLES = """
class Wave(nn.Module):
    def __init__(self, mel_bins=8, hop=4):
        super().__init__()
        self.hop = hop
        self.front, self.cond = nn.Conv1d(1, 16, 1), nn.Conv1d(mel_bins, 16, 1)
    def forward(self, wave, mel):
        longer = F.interpolate(mel, scale_factor=float(self.hop), mode="nearest")
        return self.front(wave.unsqueeze(1)) + self.cond(longer)
"""
WRONG = """
class Broken(nn.Module):
    def __init__(self, embed_dim=24):
        super().__init__()
        self.a, self.b = nn.Linear(embed_dim, 20), nn.Linear(16, embed_dim)
    def forward(self, x):
        return self.b(self.a(x))
"""


def fitted(tmp_path, text):
    file = tmp_path / "net.py"
    head = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"
    file.write_text(head + dedent(text))
    job = guessed_job(TraceCommand(target=str(file)), limits=Limits())
    host = LocalHost()
    checked_answer(host.ask("load", **surroundings(job)))
    fit = fit_inputs(job, host)
    return fit and {i.name: f"{' '.join(i.axes)} {i.dtype}" for i in fit.inputs}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (PICTURES, {"features": "B D 8 8 float", "pos": "B D 8 8 float"}),
        (COLUMNS, {"x_num": "B D float", "x_cat": "B S int"}),
        (PAIRED, {"image_features": "B 32 float", "text": "B S int"}),
        (PATCHES, {"img": "B 1 24 24 float"}),
        (EDGES, {"nodes": "B S 10 float", "edge": "B S S 5 float"}),
        (SAMPLES, {"wave": "B 48 float", "mel": "B S D float"}),
    ],
)
def test_what_nothing_says_is_found_by_trying(tmp_path, text, expected):
    """Maps with axes to flatten, columns of numbers and of kinds, a width, and a picture's size; a
    vector for each pair; and as many samples as the frames need, for one would be broadcast."""
    assert fitted(tmp_path, text) == expected


def test_layers_that_do_not_fit_each_other_are_no_matter_of_inputs(tmp_path):
    """A layer took x as it came, so the crash behind it is the module's own and stays."""
    assert fitted(tmp_path, WRONG) is None
