"""Changes of the text: which are found, and what is not taken for one."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import torch

from attnlab.candidate.host import LocalHost
from attnlab.catalogue.load import load
from attnlab.catalogue.texts import shipped_text
from attnlab.diagnosis.rewrites import fault_of, rewrites
from attnlab.diagnosis.suggestions import difference, suggestions
from attnlab.diagnosis.unused import uses_of_unused
from attnlab.grading.pipeline import run_job
from attnlab.mutation_testing.operators.base import Source, apply_edit, load_mutations
from attnlab.records import Code, Contract, Input, Job

CONTRACT = Contract(
    sizes={"B": 2, "S": 5, "D": 12},
    init={"width": "D", "reach": 3},
    inputs=(Input(name="x", axes=("B", "S", "D")),),
    vary=("B", "S"),
)
MINE = """import math

import torch
from torch import nn
from torch.nn import functional as F


class Near(nn.Module):
    def __init__(self, width, reach):
        super().__init__()
        self.width, self.reach = width, reach
        self.mix = nn.Linear(width, 3 * width, bias=False)
        self.one, self.two = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x):
        q, k, v = self.mix(self.one(x)).chunk(3, dim=-1)
        rows = []
        for t in range(x.shape[1]):
            first = max(0, t - self.reach + 1)
            near_k, near_v = k[:, first : t + 1], v[:, first : t + 1]
            scores = (near_k * q[:, t : t + 1]).sum(-1) / math.sqrt(self.width)
            rows.append((scores.softmax(-1)[..., None] * near_v).sum(1))
        x = x + torch.stack(rows, 1)
        return x + F.gelu(self.two(x))
"""
THEIRS = """import torch
from torch import nn


class Near(nn.Module):
    def __init__(self, width, reach):
        super().__init__()
        self.reach = reach
        self.mix = nn.Linear(width, 3 * width, bias=False)
        self.one, self.two = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x):
        q, k, v = torch.einsum("bsd,ed->bse", self.one(x), self.mix.weight).tensor_split(3, -1)
        place = torch.arange(x.shape[1])
        gap = place[:, None] - place
        scores = q @ k.mT * q.shape[-1] ** -0.5
        scores = scores.masked_fill((gap < 0) | (gap >= self.reach), -torch.inf)
        x = x + scores.softmax(-1) @ v
        return x + nn.functional.gelu(self.two(x))
"""


def diff(mine, theirs=THEIRS, contract=CONTRACT, name="Near"):
    job = Job(
        candidate=Code(file="mine.py", text=mine, name=name),
        contract=contract,
        reference=Code(file="right.py", text=theirs, name=name),
        stages=("diff",),
        seed=1,
    )
    report = run_job(job, lambda *_: LocalHost())
    assert report.diff is not None, report.message
    return report.diff


@pytest.mark.parametrize(
    ("old", "new", "fix"),
    [
        ("t - self.reach + 1", "t - self.reach", ""),
        ("* near_v", "* near_k", "near_v"),
        ("F.gelu(", "F.relu(", "F.gelu"),
        ("self.two(x)", "self.one(x)", "self.two"),
        ("x = x + torch.stack", "x = torch.stack", ""),
    ],
)
def test_a_line_without_a_counterpart_is_named_by_what_it_should_be(old, new, fix):
    """The reference has no loop, and no value for a step of it."""
    assert diff(MINE).outcome == "same"
    mine = MINE.replace(old, new)
    assert mine != MINE
    (named,) = diff(mine).diagnosis
    before, after = MINE.splitlines(), mine.splitlines()
    wrong = next(n for n, pair in enumerate(zip(before, after, strict=True), 1) if len({*pair}) > 1)
    assert abs(named.line - wrong) <= 1, named
    assert fix in named.fix
    assert named.relation not in {"other", "other-step", "arguments"}


def test_every_kind_of_change_is_told_in_words():
    """None is told by its name alone."""
    kinds = {kind for kind, _ in rewrites(Source(MINE))} | {m.id for m in load_mutations()}
    for kind in sorted(kinds):
        assert len(fault_of(kind).split()) > 2, kind


def test_what_goes_round_a_fault_is_not_confirmed():
    """One peak for all blocks hides that sums are not rescaled: right, but not what is wrong."""
    challenge = load().find("loud-latecomers")
    style = next(p for p in challenge.alternatives if p.endswith("log_sums.py"))
    theirs = Path(style).read_text("utf-8")
    found = diff(shipped_text(challenge), theirs, challenge.contract, challenge.class_name)
    assert found.diagnosis
    assert not any(d.confirmed for d in found.diagnosis)


def test_what_an_earlier_call_left_is_no_reason_to_change_a_line():
    """A fresh copy of the file is right as it is, so that every change would seem to help."""
    challenge = load().find("wrong-if-not-the-first")
    style = next(p for p in challenge.alternatives if p.endswith("no_table.py"))
    theirs = Path(style).read_text("utf-8")
    found = diff(shipped_text(challenge), theirs, challenge.contract, challenge.class_name)
    assert not any(d.fix for d in found.diagnosis)


def test_a_loop_without_an_end_is_left_and_nothing_runs_twice(tmp_path, monkeypatch):
    """A change that never ends gives nothing, the next one does, and what the file does besides
    its definitions is done once."""
    monkeypatch.chdir(tmp_path)
    text = "import torch\nimport os; os.mkdir('here')\ndef f(x):\n    return x + 1\n"
    host = LocalHost()
    host.ask("load", file="f.py", text=text, path="", own=None)
    endless = "    while len(str(x)): pass\n"
    begun = time.process_time()
    asked = {"name": "f", "init": {}, "seed": 0, "weights": {}}
    answer = host.ask(
        "edited_results",
        text=text,
        changes=[(4, 4, endless), (4, 4, "    return x - 1\n"), (4, 4, "    return y\n")],
        inputs=[("x", torch.ones(3))],
        seconds=60.0,
        **asked,
    )
    never, right, raised = answer["results"]
    assert (never, raised) == (None, None)
    assert torch.equal(right, torch.zeros(3, dtype=torch.float64))
    assert time.process_time() - begun < 10
    assert (tmp_path / "here").is_dir()  # made a second time, it would have raised
    after = host.ask("values", inputs=[("x", torch.ones(3))], only_output=True, **asked)
    assert torch.equal(after["result"], torch.full((3,), 2.0, dtype=torch.float64))


def test_the_reference_suggests_what_it_writes_in_such_places():
    """Numbers, plain arguments and functions; both of a pair of numbers together."""
    source = Source("y = f(x, dim=-1).clamp(-2, 2)\nz = relu(y)\n")
    theirs = Source("gelu(f(x, dim=1, keepdim=True)).clamp(-3, 3)")
    texts = {apply_edit(source.text, edit) for _, edit in suggestions(source, theirs)}
    assert source.text.replace("dim=-1", "dim=1, keepdim=True") in texts
    assert source.text.replace("-2, 2", "-3, 3") in texts
    assert source.text.replace("relu", "gelu") in texts


LAYERS = """
@dataclass
class Sizes:
    dim: int = 64

    @property
    def head_dim(self):
        return 16


class Part(nn.Module):
    def forward(self, x, keep=None, causal=False):
        return x


class Net(nn.Module):
    def __init__(self, sizes, dropout):
        self.part = Part()
        self.places = Places(sizes.dim, dropout)

    def forward(self, x, keep):
        cap = torch.tanh(x / self.cap)
        top, where = cap.topk(2)
        rows = self.rows(0, x - self.kept)
        steps = torch.arange(n - 1, -1, -1)
        cut = cells.permute(0, 2, 4, 1, 3, 5)
        return self.part(x.mean((-2, -1)))


class Places(nn.Module):
    def __init__(self, width, most=9, dropout=0.1):
        self.most = most
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Places(sizes.dim, dropout)", "Places(sizes.dim, dropout=dropout)"),
        ("Places(sizes.dim,", "Places(sizes.head_dim,"),
        ("torch.tanh(x / self.cap)", "torch.tanh(x / self.cap) * self.cap"),
        ("self.rows(0, x - self.kept)", "self.rows(self.kept, x)"),
        ("arange(n - 1, -1, -1)", "arange(n - 1, -n, -1)"),
        ("permute(0, 2, 4, 1, 3, 5)", "permute(0, 2, 4, 3, 5, 1)"),
        ("x.mean((-2, -1)))", "x.mean((-1,)))"),
        ("x.mean((-2, -1)))", "x.mean((-2, -1)), causal=True)"),
        ("x.mean((-2, -1)))", "x.mean((-2, -1)), keep=keep)"),
    ],
)
def test_lines_are_changed_as_people_get_them_wrong(old, new):
    """An argument at another's place, a field, a cap that is not undone, a range, axes, a switch
    and a mask that a call leaves out."""
    assert old in LAYERS
    source = Source(LAYERS)
    edits = [*suggestions(source, source), *rewrites(source)]
    assert LAYERS.replace(old, new) in {apply_edit(LAYERS, edit) for _, edit in edits}


def test_what_the_reference_divides_by_its_own_sum_is_suggested():
    """As the weights of the experts that were chosen."""
    source, theirs = Source("y = f(top)\n"), Source("w = w / w.sum(-1, keepdim=True)\n")
    texts = {apply_edit(source.text, edit) for _, edit in suggestions(source, theirs)}
    assert "y = f((top / top.sum(-1, keepdim=True)))\n" in texts


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("q @ k.mT / hd", "q @ k.mT * hd", "exponent"),
        ("a - b", "a + b", "sign"),
        ("ones.tril(1)", "ones.tril(0)", "wrong-number"),
        ("w @ k", "w @ v", "wrong-operand"),
        ("relu(x)", "gelu(x)", "wrong-function"),
        ("mix(x)", "x + mix(x)", "missing-term"),
        ("mix(x)", "mix(norm(x))", "missing-step"),
        ("where(~m, a, b)", "where(m, a, b)", "mask-inverted"),
        ("a < b", "a <= b", "comparison-shifted"),
        ("view(b, s, h)", "view(b, h, s)", "order"),
    ],
)
def test_two_lines_tell_how_one_is_wrong(old, new, kind):
    """By the words that only one of them has."""
    assert difference(old, new) == kind


LOOPS = """
class Net(nn.Module):
    def __init__(self, width):
        self.one, self.two = nn.LayerNorm(width), nn.LayerNorm(width)

    def slopes(self, count, start):
        return [start**i for i in range(count)]

    def forward(self, x):
        past = x.shape[1]
        for layer in self.layers:
            x = layer(x)
            x = self.one(x)
        h = self.one(x)
        x = x * self.slopes(0, past)
        return self.one(x + self.mix(h))
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("            x = self.one(x)\n", "        x = self.one(x)\n"),
        ("        h = self.one(x)\n", "            h = self.one(x)\n"),
        ("start**i", "start**(i + 1)"),
        ("range(count)", "range(1, count + 1)"),
        ("self.slopes(0, past)", "self.slopes(past, past)"),
        ("self.mix(h)", "self.mix(self.two(x))"),
    ],
)
def test_ends_of_loops_counts_and_unused_layers_are_tried(old, new):
    """A line on the other side of a loop's end, a power and a range that count from one, a variable
    in place of a number, and a layer that nothing uses in place of what is stale."""
    assert old in LOOPS
    source = Source(LOOPS)
    edits = [*suggestions(source, source), *rewrites(source), *uses_of_unused(source)]
    assert LOOPS.replace(old, new, 1) in {apply_edit(LOOPS, edit) for _, edit in edits}


TURNED = """import torch
from torch import nn


class Turn(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.mix = nn.Linear(dim, dim)

    def forward(self, x):
        z = torch.view_as_complex(self.mix(x).unflatten(-1, (-1, 2)).contiguous())
        speed = 100.0 ** (-torch.arange(z.shape[-1], dtype=torch.float64) / z.shape[-1])
        angle = torch.arange(z.shape[1], dtype=torch.float64)[:, None] * speed
        return torch.view_as_real(z * torch.polar(torch.ones_like(angle), angle)).flatten(-2)
"""


def test_complex_values_are_lent_as_what_they_are():
    """They are recorded as pairs of real numbers, of another shape."""
    contract = Contract(
        sizes={"B": 2, "S": 5, "D": 12},
        init={"dim": "D"},
        inputs=(Input(name="x", axes=("B", "S", "D")),),
        vary=("B", "S"),
    )
    mine = TURNED.replace("* speed", "/ speed")
    (named,) = diff(mine, TURNED, contract, "Turn").diagnosis
    assert named.line == mine[: mine.index("/ speed")].count("\n") + 1


WINDOWED = """import torch
from torch import nn


def hidden(S, window):
    far = torch.arange(S)[:, None] - torch.arange(S)
    return (far < 0) | (far >= window)


class Near(nn.Module):
    def __init__(self, width, reach):
        super().__init__()
        self.reach = reach
        self.qkv = nn.Linear(width, 3 * width)

    def attend(self, q, k, v):
        scores = q @ k.mT / q.shape[-1] ** 0.5
        return scores.masked_fill(hidden(q.shape[1], self.reach), -torch.inf).softmax(-1) @ v

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        return x + self.attend(q, k, v)
"""


def windowed(*changes):
    """What is named where this much of the text is changed, and the lines that are."""
    text, lines = WINDOWED, WINDOWED.splitlines()
    for old, new in changes:
        text = text.replace(old, new)
    wrong = {n for n, line in enumerate(text.splitlines(), 1) if line != lines[n - 1]}
    assert len(wrong) == len(changes)
    return diff(text, WINDOWED).diagnosis, wrong


def test_two_faults_of_which_one_makes_scores_and_one_masks_them_are_both_named():
    """A wrong value in the mask, by which each position sees itself alone, made the average equal
    its values and so hid the scores."""
    named, wrong = windowed((" / q.shape[-1] ** 0.5", ""), ("far >= window", "far > window"))
    assert {d.line for d in named} == wrong
    assert all(d.confirmed for d in named)


@pytest.mark.parametrize(
    ("old", "new", "fix"),
    [
        ("(far < 0) | (", "(far < 0) & (", "(far < 0) | (far >= window)"),
        ("self.attend(q, k, v)", "self.attend(q, q, v)", "self.attend(q, k, v)"),
    ],
)
def test_a_change_is_shown_beside_what_the_values_say_of_its_line(old, new, fix):
    """Also where what is computed on the line is computed in a function that it calls."""
    (named,), (line,) = windowed((old, new))
    assert (named.line, named.confirmed) == (line, True)
    assert fix in named.fix


def test_the_width_of_a_head_is_known_at_the_stated_sizes_too():
    """They are the last that are tried, and name the width and the heads alone."""
    text = """from torch import nn


class Near(nn.Module):
    def __init__(self, width, heads):
        super().__init__()

    def forward(self, x):
        return x.transpose(1, 2).softmax(-1)
"""
    contract = Contract(
        sizes={"B": 2, "S": 5, "D": 12, "H": 3},
        init={"width": "D", "heads": "H"},
        inputs=(Input(name="x", axes=("B", "H", "S", "hd")),),
        vary=("B", "S"),
    )
    assert diff(text, text, contract).outcome == "same"


BLOCK = """import torch
from torch import nn
import torch.nn.functional as F


def rms(x, gain):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * gain


class Block(nn.Module):
    def __init__(self, width, reach):
        super().__init__()
        self.one = nn.Parameter(torch.ones(width))
        self.two = nn.Parameter(torch.ones(width))
        self.temperature = nn.Parameter(torch.zeros(width))
        self.up = nn.Parameter(torch.randn(2 * width, width))
        self.up_bias = nn.Parameter(torch.zeros(2 * width))
        self.down = nn.Parameter(torch.randn(width, 2 * width))

    def mix(self, x):
        return x.roll(1, -2) * torch.exp(self.temperature)

    def forward(self, x):
        x = x + self.mix(rms(x, self.one))
        inner = rms(x, self.two)
        wide = F.silu(F.linear(inner, self.up, self.up_bias))
        return x + F.linear(wide, self.down)
"""
STYLED = """import torch
from torch import nn


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return self.weight * (x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt())


class Block(nn.Module):
    def __init__(self, width, reach):
        super().__init__()
        self.norm1, self.norm2 = Norm(width), Norm(width)
        self.temperature = nn.Parameter(torch.zeros(width))
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.SiLU())
        self.out = nn.Linear(2 * width, width, bias=False)

    def forward(self, x):
        turned = torch.cat((self.norm1(x)[:, -1:], self.norm1(x)[:, :-1]), 1)
        x = turned * self.temperature.exp() + x
        return self.out(self.mlp(self.norm2(x))) + x
"""


def test_styles_that_hold_weights_otherwise_are_the_same():
    """Matrices without layers, as layers store them, and gains of any name."""
    assert diff(BLOCK, STYLED, name="Block").outcome == "same"


@pytest.mark.parametrize(
    ("old", "new", "relation", "fix"),
    [
        ("x = x + self.mix", "x = self.mix", "missing-term", "x + self.mix(rms(x, self.one))"),
        ("inner = rms(x, self.two)", "inner = x", "missing-step", "inner = rms(x, self.two)"),
        (", self.up_bias", "", "missing-term", "F.linear(inner, self.up, self.up_bias)"),
        ("torch.exp(self.temperature)", "self.temperature", "missing-step", ".exp()"),
    ],
)
def test_what_is_left_out_is_named_where_it_belongs(old, new, relation, fix):
    """A residual that two later steps lack, a norm or a bias of which only the weight is left, and
    a function of each number."""
    assert old in BLOCK
    found = diff(BLOCK.replace(old, new), STYLED, name="Block")
    line = BLOCK[: BLOCK.index(old)].count("\n") + 1
    (named,) = found.diagnosis
    assert (named.line, named.relation) == (line, relation)
    assert fix in named.fix


def test_a_number_that_may_be_right_by_accident_is_not_confirmed():
    """The same default stands for two things: either would make the output right."""
    mine = MINE.replace("def __init__(self, width, reach):", "def __init__(self, width, reach=3):")
    mine = mine.replace("self.reach = width, reach", "self.reach, self.other = width, 2, reach")
    (named,) = diff(mine).diagnosis
    assert not named.confirmed
