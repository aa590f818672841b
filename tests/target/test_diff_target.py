"""What attnlab diff compares with, and how weights go from one to the other."""

import pytest

from attnlab.candidate.host import LocalHost
from attnlab.errors import Refused, Unreadable
from attnlab.grading.pipeline import run_job
from attnlab.records import Limits
from attnlab.target.command_line import TraceCommand
from attnlab.target.diff_target import diff_job, fed_by_reference, read_weight_map

RIGHT = """
from torch import nn


class Net(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.both = nn.Linear(dim, 2 * dim)

    def forward(self, x):
        one, other = self.both(x).chunk(2, -1)
        return one * other.sigmoid()
"""
MINE = RIGHT.replace(
    "self.both = nn.Linear(dim, 2 * dim)",
    "self.a, self.b = nn.Linear(dim, dim), nn.Linear(dim, dim)",
).replace("self.both(x).chunk(2, -1)", "self.a(x), self.b(x)")
MAP = """[weights]
"a.weight" = "part(both.weight, 0, 2)"
"a.bias" = "part(both.bias, 0, 2)"
"b.weight" = "part(both.weight, 1, 2)"
"b.bias" = "part(both.bias, 1, 2)"
"""


def compared(folder, mine, theirs, weights=""):
    """What is said of two files."""
    for name, text in (("mine.py", mine), ("right.py", theirs), ("map.toml", weights)):
        (folder / name).write_text(text, encoding="utf-8")
    typed = TraceCommand(target=str(folder / "mine.py"), inputs=("x: B S D",), init="dim=D")
    file = str(folder / "map.toml") if weights else ""
    job = diff_job(typed, str(folder / "right.py"), Limits(seconds=60), file)
    diff = run_job(job, lambda *_: LocalHost()).diff
    assert diff is not None
    return diff


def test_a_map_says_how_weights_go(tmp_path):
    """In place of what is found by itself; the other way round is a difference."""
    assert compared(tmp_path, MINE, RIGHT).outcome == "same"
    assert compared(tmp_path, MINE, RIGHT, MAP).outcome == "same"
    turned = MAP.replace("1, 2", "_, 2").replace("0, 2", "1, 2").replace("_, 2", "0, 2")
    assert compared(tmp_path, MINE, RIGHT, turned).outcome == "different"


def test_weights_that_cannot_be_matched_are_no_difference(tmp_path):
    """It is said which ones, and what helps."""
    other = MINE.replace("self.a,", "self.c = nn.Linear(dim, 7)\n        self.a,")
    diff = compared(tmp_path, other, RIGHT)
    assert diff.outcome == "cannot-compare"
    assert "c.weight" in diff.message
    assert "--weights" in diff.hint


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (
            lambda text: text.replace("* other", "* 2 * other"),
            "tensor 1 of the 2 that are returned",
        ),
        (lambda text: text, "tensor 1 of what is returned (1 of yours and 2 of the reference)"),
    ],
)
def test_of_several_outputs_those_of_both_are_compared(wrong, says, tmp_path):
    """A tuple or a dict is no reason to say that outputs differ; how many there are is said."""
    right = RIGHT.replace("return one * other.sigmoid()", "return one * other.sigmoid(), other")
    mine = RIGHT.replace("return one * other.sigmoid()", 'return {"y": one * other.sigmoid()}')
    diff = compared(tmp_path, wrong(mine), right)
    assert diff.outcome == ("different" if "* 2 *" in wrong(mine) else "same")
    assert says in diff.message


MINE_WITH_HEADS = """
import torch
from torch import nn

class Attention(nn.Module):
    def __init__(self, dim=12, heads=3):
        super().__init__()
        self.h = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)

    def forward(self, x, keep=None):
        b, s, d = x.shape
        q, k, v = self.qkv(x).view(b, s, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4)
        scores = q @ k.mT / (d // self.h) ** 0.5
        if keep is not None:
            scores = scores.masked_fill(~keep.SHAPE, float("-inf"))
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, s, d))
"""


@pytest.mark.parametrize(
    ("mask", "shape"),
    [
        ("keep: B S bool allows optional", "view(b, 1, 1, s)"),
        ("keep: S S bool allows optional", "view(s, s)"),
        ("keep: B S S bool allows optional", "unsqueeze(1)"),
        ("keep: B 1 1 S bool allows optional", "view(b, 1, 1, s)"),
    ],
)
def test_attention_of_pytorch_is_fed_as_mine_is(mask, shape, tmp_path):
    """One input is its query, key and value; masks of every shape and polarity are turned."""
    file = tmp_path / "mine.py"
    file.write_text(MINE_WITH_HEADS.replace("SHAPE", shape), encoding="utf-8")
    typed = TraceCommand(target=str(file), inputs=("x: B S D", mask))
    job = diff_job(typed, "torch.nn:MultiheadAttention", Limits(seconds=60))
    diff = run_job(job, lambda *_: LocalHost()).diff
    assert (diff.outcome, diff.message[:7]) == ("same", "outputs")


def test_what_returns_no_tensor_cannot_be_compared(tmp_path):
    """Nothing is said of a difference."""
    mine = RIGHT.replace("return one * other.sigmoid()", "return None")
    assert compared(tmp_path, mine, RIGHT).outcome == "cannot-compare"


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        (None, Unreadable, "No such file"),
        ("x = ", Refused, "is no TOML"),
        ("x = 1", Refused, r"no table \[weights\]"),
        ('[weights]\n"a" = "cut(b)"', Refused, "cut is none of"),
        ('[weights]\n"a" = "cat(b"', Refused, "a: "),
    ],
)
def test_a_map_that_cannot_be_read_is_refused(text, error, says, tmp_path):
    """In one line, with what such a file looks like."""
    file = tmp_path / "map.toml"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    with pytest.raises(error, match=says):
        read_weight_map(str(file))


def test_what_the_reference_runs_with_is_said_with_the_names_of_mine(tmp_path):
    """Also numbers that are no tensors; nothing where the user says what goes in."""
    right = RIGHT.replace("def forward(self, x):", "def forward(self, x, steps):")
    mine = right.replace("x, steps", "inp, many").replace("(x)", "(inp)")
    (tmp_path / "right.py").write_text(right)
    (tmp_path / "mine.py").write_text(mine)
    reference = f"{tmp_path / 'right.py'}:Net"
    typed = TraceCommand(target=f"{tmp_path / 'mine.py'}:Net", verb="diff")
    fed = fed_by_reference(
        typed, reference, "Net", lambda job: run_job(job, lambda *_: LocalHost()), ""
    )
    assert fed is not None
    assert fed.inputs[0] == "inp: B S D"
    assert fed.inputs[1].startswith("many = ") or fed.inputs[1].startswith("many: ")
    said = TraceCommand(target=typed.target, inputs=("inp: B S D",), verb="diff")
    none = fed_by_reference(said, reference, "Net", lambda job: pytest.fail("nothing runs"), "")
    assert none is None
