"""attnlab diff: mine beside one that works, with every kind of reference."""

import subprocess
from pathlib import Path

import pytest
import torch

from attnlab.catalogue.inputs import parse_input
from attnlab.catalogue.load import load
from attnlab.grading.diff_inputs import _sides

BASE = next(c for c in load().challenges if c.name == "tomorrow-is-known")
RIGHT = Path(BASE.solution).read_text("utf-8")
WRONG = RIGHT.replace("/ math.sqrt(self.head_dim)", "/ self.head_dim")


@pytest.fixture
def files(shell):
    """mine.py and right.py in the folder where commands run."""
    Path("mine.py").write_text(WRONG)
    Path("right.py").write_text(RIGHT)
    return shell


def test_the_line_and_its_relation_are_named(files):
    """With the right line beside it, and what to do next; exit code 1."""
    said = files("diff", "mine.py", "right.py")
    assert said.code == 1
    assert "mine.py:35  scores = q @ k.transpose(-2, -1) / self.head_dim" in said.out
    assert "which is sqrt(hd)" in said.out
    assert "right.py:35" in said.out
    assert "confirmed" in said.out
    assert "look at mine.py:35" in said.out


def test_json_has_the_documented_keys(files):
    """One document, also where both are the same."""
    found = files("diff", "mine.py", "right.py", "--json").json
    assert found["outcome"] == "different"
    assert found["max_error"] > 0
    (diagnosis,) = found["diagnosis"]
    assert {"file", "line", "end_line", "relation", "message", "confidence", "confirmed"} <= set(
        diagnosis
    )
    same = files("diff", "right.py", "right.py", "--json")
    assert (same.code, same.json["outcome"], same.json["diagnosis"]) == (0, "same", [])


def commit_all():
    """What lies in the folder becomes a commit of git."""
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "right"]):
        subprocess.run(["git", *words], check=True)


def test_a_past_version_of_the_file_is_a_reference(files):
    """Or what is compared: what git has of it, under the name that was typed."""
    Path("mine.py").write_text(RIGHT)
    commit_all()
    Path("mine.py").write_text(WRONG)
    said = files("diff", "mine.py", "mine.py@HEAD")
    assert said.code == 1
    assert "mine.py@HEAD:35" in said.out
    turned = files("diff", "mine.py@HEAD", "mine.py").out
    assert "mine.py@HEAD:35  scores = q @ k.transpose(-2, -1) / math.sqrt" in turned


@pytest.mark.parametrize("past", ["net/attention.py@HEAD", "net.attention:{0}@HEAD"])
def test_a_past_version_imports_what_was_beside_it(shell, past):
    """A fault in a file that it imports is no equality: the whole package is that of the commit."""
    Path("net").mkdir()
    Path("net/__init__.py").touch()
    Path("net/scaling.py").write_text(
        "import math\n\ndef scale(width):\n    return math.sqrt(width)\n"
    )
    text = RIGHT.replace("math.sqrt(self.head_dim)", "scale(self.head_dim)")
    Path("net/attention.py").write_text("from .scaling import scale\n" + text)
    commit_all()
    Path("net/scaling.py").write_text("def scale(width):\n    return width\n")
    said = shell("diff", "net/attention.py", past.format(BASE.class_name))
    assert said.code == 1
    assert "which is sqrt(hd)" in said.out
    assert "net/attention.py@HEAD:36" in said.out


def test_what_cannot_be_compared_is_not_wrong(files):
    """The reference library has other weights: exit code 3, and why."""
    said = files("diff", "mine.py", "ref:MultiHeadSelfAttention")
    assert said.code == 3
    assert "cannot be compared" in said.out


@pytest.mark.parametrize(
    ("reference", "says"),
    [
        ("ref:MultiHeadAttention", "the reference library has no such class"),
        ("nowhere.py", "no such file"),
        ("right.py:Nothing", "defines no Nothing"),
        ("mine.py@HEAD", "mine.py@HEAD: not a git repository"),
        ("no.such.module:Net@HEAD", "no.such.module: no such module"),
        ("no.such.module:Net", "no.such"),
    ],
)
def test_a_reference_that_is_none_is_refused(files, reference, says):
    """In one line, before anything runs."""
    said = files("diff", "mine.py", reference)
    assert said.code in (2, 3)
    assert says in said.err + said.out
    assert "Traceback" not in said.err


def test_a_grade_names_the_line_where_it_is_asked_to(shell):
    """The line and how it is wrong, and not what stands there in the solution; it is a hint."""
    shell("start", BASE.name)
    plain = shell("grade", BASE.name)
    assert "scores" not in plain.out
    said = shell("grade", BASE.name, "--reveal")
    (diagnosis,) = shell("grade", BASE.name, "--reveal", "--json").json["diagnosis"]
    assert said.code == 1
    assert f"{BASE.name}.py:{diagnosis['line']}" in said.out
    assert diagnosis["their_source"] == ""
    rows = shell("list", "--all", "--json").json["challenges"]
    assert next(row for row in rows if row["slug"] == BASE.slug)["revealed"]


def test_a_grade_that_passes_compares_nothing(shell):
    """There is no line to name."""
    Path("mine.py").write_text(f"# attnlab: {BASE.slug}\n{RIGHT}")
    found = shell("grade", "mine.py", "--reveal", "--json").json
    assert (found["outcome"], found["diagnosis"]) == ("passed", [])


FUSED = """
from torch import nn


class Attn(nn.Module):
    def __init__(self, embed_dim: int, num_heads: int):
        super().__init__()
        self.heads = num_heads
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim)
        self.proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x):
        b, s, d = x.shape
        q, k, v = self.qkv(x).view(b, s, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v
        return self.proj(mixed.transpose(1, 2).flatten(2))
"""
APART = """
from torch import nn


class Attn(nn.Module):
    def __init__(self, embed_dim: int, num_heads: int):
        super().__init__()
        self.heads = num_heads
        self.q, self.k, self.v, self.o = (nn.Linear(embed_dim, embed_dim) for _ in range(4))

    def forward(self, x):
        q, k, v = (
            layer(x).view(*x.shape[:2], self.heads, -1).transpose(1, 2)
            for layer in (self.q, self.k, self.v)
        )
        mixed = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v
        return self.o(mixed.transpose(1, 2).flatten(2))
"""


@pytest.fixture
def checkpoints(shell):
    """A fused module and one with a layer each, and checkpoints of the same weights for both."""
    Path("fused.py").write_text(FUSED)
    Path("apart.py").write_text(APART)
    theirs = {
        f"{name}.{kind}": torch.randn(*[20] * (2 if kind == "weight" else 1)) / 4
        for name in "qkvo"
        for kind in ("weight", "bias")
    }
    mine = {f"proj.{kind}": theirs[f"o.{kind}"] for kind in ("weight", "bias")}
    for kind in ("weight", "bias"):
        mine[f"qkv.{kind}"] = torch.cat([theirs[f"{name}.{kind}"] for name in "qkv"])
    torch.save(mine, "mine.pt")
    torch.save({"model": {f"blocks.3.attn.{k}": v for k, v in theirs.items()}}, "theirs.pt")
    torch.save(mine | {"proj.weight": mine["proj.weight"].T}, "turned.pt")
    return shell


BOTH = ("--sizes", "H=4", "--reference-checkpoint", "theirs.pt", "--checkpoint")


def test_a_checkpoint_of_either_side_serves_both(checkpoints):
    """The map that is proven goes both ways, sizes are read off the weights, a submodule is found
    by its names; and a converter's slip is named by the weight that holds it."""
    mine = checkpoints("diff", "fused.py:Attn", "apart.py:Attn", "--checkpoint", "mine.pt")
    theirs = checkpoints("diff", "fused.py:Attn", "apart.py:Attn", *BOTH[:-1])
    for said in (mine, theirs):
        assert said.code == 0, said.out
        assert "sizes: D=20 of the checkpoint" in said.out
        assert '"qkv.weight" = "cat(q.weight, k.weight, v.weight)"' in said.out
    turned = checkpoints("diff", "fused.py:Attn", "apart.py:Attn", *BOTH, "turned.pt", "--json")
    assert (turned.code, turned.json["part"]) == (1, "weights")
    assert "proj.weight is transposed" in turned.json["message"]
    assert "qkv" not in turned.json["message"]


def test_two_checkpoints_need_no_map(checkpoints):
    """Where wrong code leaves none to be proven, its line is named all the same."""
    Path("bad.py").write_text(FUSED.replace("/ q.shape[-1] ** 0.5", "/ d**0.5"))
    said = checkpoints("diff", "bad.py:Attn", "apart.py:Attn", *BOTH, "mine.pt")
    assert said.code == 1
    assert "bad.py:15" in said.out
    assert "2 times too small" in said.out


def test_checkpoints_that_do_not_fit_are_no_difference(checkpoints):
    """Of other sizes, of another module, no checkpoint at all, or missing: a line each."""
    torch.save({"qkv.weight": torch.zeros(3)}, "other.pt")
    wide = {"qkv.weight": torch.zeros(72, 24), "qkv.bias": torch.zeros(72)}
    torch.save(wide | {"proj.weight": torch.zeros(24, 24), "proj.bias": torch.zeros(24)}, "wide.pt")
    Path("junk.pt").write_text("junk")
    for name, why in (
        ("other.pt", "other.pt has no qkv.bias; it holds qkv.weight"),
        ("wide.pt", "D is 24 in"),
        ("junk.pt", "junk.pt cannot be read as a checkpoint: torch.save did not write it"),
    ):
        said = checkpoints("diff", "fused.py:Attn", "apart.py:Attn", *BOTH, name, "--json")
        assert said.code == 3
        assert why in said.json["message"]
    gone = checkpoints("diff", "fused.py:Attn", "apart.py:Attn", "--checkpoint", "gone.pt")
    assert (gone.code, "gone.pt: no such file" in gone.err) == (2, True)


def test_what_was_not_fed_is_told(shell):
    """Equal without a cache says nothing of what happens with one; fed, its fault is named."""
    cached = """
import torch
from torch import nn


class Attn(nn.Module):
    def __init__(self, embed_dim: int):
        super().__init__()
        self.q, self.k = nn.Linear(embed_dim, embed_dim), nn.Linear(embed_dim, embed_dim)

    def forward(self, x, past: torch.Tensor | None = None):
        q, k = self.q(x), self.k(x)
        if past is not None:
            k = torch.cat([past, k], 1)
        return (q @ k.mT).softmax(-1) @ k
"""
    Path("right.py").write_text(cached)
    Path("bad.py").write_text(cached.replace("k = torch.cat([past, k], 1)", "k = past + k"))
    said = shell("diff", "bad.py:Attn", "right.py:Attn")
    assert said.code == 0
    assert "not compared: what forward does with past (None here)" in " ".join(said.out.split())
    fed = shell("diff", "bad.py:Attn", "right.py:Attn", "--input", "past: B S D")
    assert (fed.code, "bad.py:14" in fed.out) == (1, True)


def test_every_tensor_that_is_returned_is_compared(shell):
    """Wrong weights beside a right output are a difference; what has another shape is told apart,
    and so is what only one side returns."""
    right = """
import torch
from torch import nn


class Attn(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.q, self.k = nn.Linear(dim, dim), nn.Linear(dim, dim)

    def forward(self, x: torch.Tensor):
        weights = (self.q(x) @ self.k(x).mT).softmax(-1)
        return weights @ x, weights
"""
    Path("right.py").write_text(right)

    def said(last):
        Path("mine.py").write_text(right.replace("weights @ x, weights", last))
        told = shell("diff", "mine.py:Attn", "right.py:Attn", "--init", "dim=8")
        return told.code, " ".join(told.out.split())

    code, out = said("weights @ x, weights * 2")
    assert (code, "tensor 2 of the 2 that are returned differs" in out) == (1, True)
    assert "mine.py:13" in out
    code, out = said("weights @ x, weights.mean(1)")
    assert (code, "tensor 1 of what is returned (2)" in out) == (0, True)
    assert "tensor 2 is not compared: it is" in out
    code, out = said("weights @ x")
    assert (code, "(1 of yours and 2 of the reference)" in out) == (0, True)
    assert "all 2 tensors that are returned" in said("weights @ x, weights")[1]


def test_a_way_of_the_weights_that_is_a_guess_is_shown_as_one(shell):
    """Where other names and a wrong line stand together nothing proves which weight is which."""
    right = """
import torch
from torch import nn


class Gated(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.value, self.gate = nn.Linear(dim, dim), nn.Linear(dim, dim)

    def forward(self, x: torch.Tensor):
        return self.value(x) * torch.sigmoid(self.gate(x))
"""
    Path("right.py").write_text(right)
    mine = right.replace("self.value", "self.inner").replace("self.gate", "self.open")
    Path("mine.py").write_text(mine.replace("sigmoid", "tanh"))
    told = shell("diff", "mine.py:Gated", "right.py:Gated", "--init", "dim=8")
    assert (told.code, "This is a guess by names, shapes and" in told.out) == (1, True)
    assert '"open.weight" = "gate.weight"' in told.out
    Path("mine.py").write_text(mine)
    told = shell("diff", "mine.py:Gated", "right.py:Gated", "--init", "dim=8")
    assert (told.code, "guess" in told.out) == (0, False)


READER = """
import torch
from torch import nn


class Reader(nn.Module):
    def __init__(self, dim=12, mem_dim=10):
        super().__init__()
        self.norm = nn.LayerNorm(mem_dim)
        self.q, self.k = nn.Linear(dim, dim), nn.Linear(mem_dim, dim)

    def forward(self, x, memory, ignore):
        keep = torch.logical_not(ignore)[:, None, :]
        scores = self.q(x) @ self.k(self.norm(memory)).mT / x.shape[-1] ** 0.5
        return scores.masked_fill(~keep, -torch.inf).softmax(-1)
"""


def test_what_goes_in_is_found_with_the_reference(shell):
    """It works, so what it runs with is what both take, under the names of mine; no flag is
    needed where widths and masks are told by neither name."""
    Path("right.py").write_text(READER)
    mine = READER.replace("x, memory, ignore", "x, source, gone").replace("(memory)", "(source)")
    mine = mine.replace("(ignore)", "(gone)").replace("~keep", "keep")
    Path("mine.py").write_text(mine)
    said = shell("diff", "mine.py:Reader", "right.py:Reader")
    assert said.code == 1, said.out
    assert "mine.py:15" in said.out
    assert '"gone: B S bool' in said.err


def test_guessed_inputs_that_run_nowhere_are_told_as_before(shell):
    """The refusal of the first try, with the flag to add."""
    text = READER.replace("self.norm(memory)", "self.norm(memory.unknown)")
    Path("right.py").write_text(text)
    Path("mine.py").write_text(text)
    said = shell("diff", "mine.py:Reader", "right.py:Reader")
    assert said.code != 0
    assert "Traceback" not in said.out + said.err


BY_LAYER = """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self, width=24, heads=3, hidden=40, kept=2):
        super().__init__()
        self.heads, self.kept = heads, kept
        self.key, self.query, self.value, self.back = (nn.Linear(width, width) for _ in range(4))
        self.up, self.gate = nn.Linear(width, hidden), nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, width)
        self.last, self.first = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x, real):
        y = self.first(x)
        q, k, v = (f(y).unflatten(-1, (self.heads, -1)).transpose(1, 2)
                   for f in (self.query, self.key, self.value))
        n = x.shape[1]
        hidden = torch.ones(n, n, dtype=torch.bool).triu(1) | (real == 0)[:, None, None]
        scores = (q @ k.mT / (x.shape[-1] // self.heads) ** 0.5).masked_fill(hidden, -torch.inf)
        x = x + self.back((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
        y = self.last(x)
        return x + self.down(torch.sigmoid(self.gate(y)) * self.up(y))
"""
BY_HEAD = """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self, dim=24, n_head=3, inner=40, topk=2):
        super().__init__()
        self.n_head = n_head
        self.norm_attn, self.norm_mlp = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.query_key_value, self.dense = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.w_in, self.w_out = nn.Linear(dim, 2 * inner), nn.Linear(inner, dim)

    def forward(self, hidden, attention_mask):
        b, n, d = hidden.shape
        fused = self.query_key_value(self.norm_attn(hidden))
        q, k, v = fused.view(b, n, self.n_head, 3, -1).permute(3, 0, 2, 1, 4)
        scores = q @ k.transpose(-1, -2) * (d // self.n_head) ** -0.5
        later = torch.arange(n)[:, None] < torch.arange(n)
        scores = scores.masked_fill(later | (attention_mask == 0)[:, None, None], -1e9)
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, n, d)
        hidden = hidden + self.dense(mixed)
        a, g = self.w_in(self.norm_mlp(hidden)).chunk(2, -1)
        return hidden + self.w_out(a * torch.sigmoid(g))
"""


@pytest.mark.parametrize("wrong", ["", ".triu(2)"])
def test_another_hand_is_compared_without_a_flag(shell, wrong):
    """Other arguments of the constructor, which all have defaults; queries, keys and values fused
    head by head, a gate in the same layer as what it opens; a mask that leaves the first query no
    key, where one gives NaN and the other does not."""
    Path("mine.py").write_text(BY_LAYER.replace(".triu(1)", wrong or ".triu(1)"))
    Path("theirs.py").write_text(BY_HEAD)
    said = shell("diff", "mine.py:Block", "theirs.py:Block", "--json")
    assert said.json["outcome"] == ("different" if wrong else "same")
    assert wrong or said.json["weights"]["gate.weight"] == "part(w_in.weight, 1, 2)"
    assert said.json["weights"]["key.bias"] == "part(query_key_value.bias, 1, 3, H)"
    lines = [d["line"] for d in said.json["diagnosis"]]
    assert lines[:1] == ([19] if wrong else [])


PADDED = """import torch
from torch import nn


class Mix(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.lin = nn.Linear(dim, dim)

    def forward(self, x, key_padding_mask=None):
        head = x[:, None]
        scores = head @ head.mT
        if key_padding_mask is not None:
            scores = scores.masked_fill(key_padding_mask[:, None, None], -1e9)
        return self.lin((scores.softmax(-1) @ head)[:, 0])
"""


@pytest.mark.parametrize("wrong", ["", "[:, None, :, None]"])
def test_a_mask_that_may_be_left_out_is_fed_where_outputs_are_equal_without_it(shell, wrong):
    """What is wrong with padding alone is no "same"."""
    Path("mine.py").write_text(PADDED.replace("[:, None, None]", wrong or "[:, None, None]"))
    Path("theirs.py").write_text(PADDED.replace("head @ head.mT", "torch.matmul(head, head.mT)"))
    said = shell("diff", "mine.py:Mix", "theirs.py:Mix", "--json")
    assert said.json["outcome"] == ("different" if wrong else "same")
    assert "not compared" not in said.json["message"]
    assert [d["line"] for d in said.json["diagnosis"]] == ([14] if wrong else [])


def test_a_norm_by_hand_and_a_second_tensor_keep_nothing_from_a_map(shell):
    """Of two that are returned the first is compared with what values tell of the weights; gains
    and shifts of norms that are defined in another order go together."""
    head = "import torch\nfrom torch import nn\n"
    Path("mine.py").write_text(
        head
        + """
class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain, self.shift = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x):
        x = x - x.mean(-1, keepdim=True)
        return x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt() * self.gain + self.shift

class Layer(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.ln_a, self.ln_b = Norm(width), Norm(width)
        self.up = nn.Linear(width, width)

    def forward(self, x):
        y = self.ln_b(x)
        y = self.ln_a(y + torch.tanh(self.up(y)))
        return y, y[:, 0]
"""
    )
    Path("theirs.py").write_text(
        head
        + """
class Layer(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.before, self.after = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.dense = nn.Linear(dim, dim)

    def forward(self, hidden):
        hidden = self.before(hidden)
        hidden = self.after(hidden + self.dense(hidden).tanh())
        return hidden, hidden[:, 0]
"""
    )
    said = shell("diff", "mine.py:Layer", "theirs.py:Layer", "--json")
    assert said.json["outcome"] == "same"
    assert said.json["weights"]["ln_b.shift"] == "before.bias"


PICTURES = """
from torch import nn
class Stem(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.mix = nn.Conv2d(3, dim, 3, padding=1)
    def forward(self, img):
        return self.mix(img).relu()
"""


def test_guessed_pictures_are_small_unless_the_user_says_how_large(shell):
    """The fewer pixels, the sooner it is told; rows and columns are two numbers."""
    Path("mine.py").write_text(PICTURES.replace("relu", "sigmoid"))
    Path("theirs.py").write_text(PICTURES)
    said = shell("diff", "mine.py:Stem", "theirs.py:Stem")
    assert (said.code, "8\u00d712" in said.out, "32" in said.out) == (1, True, False)
    said = shell("diff", "mine.py:Stem", "theirs.py:Stem", "--input", "img: B 3 18 18")
    assert (said.code, "18\u00d718" in said.out, "8\u00d712" in said.out) == (1, True, False)


@pytest.mark.parametrize(
    ("axes", "sides"),
    [
        ("B 3 32 32", [2]),
        ("B 32 32 32", [2, 1]),  # as many channels, first or last
        ("B 32 32 D", [1]),
        ("B 3 8 8", []),
        ("B 32 32", []),
    ],
)
def test_the_sides_of_a_picture_are_two_equal_large_numbers(axes, sides):
    """Where there are as many channels as pixels, either may come first."""
    assert _sides(parse_input(f"img: {axes}")) == sides


IN_ANOTHER_ORDER = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.d, self.c, self.b, self.a = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x):
        x = x.softmax(1)
        x = torch.tanh(self.a(x))
        x = torch.tanh(self.b(x))
        x = torch.tanh(self.c(x))
        return self.d(x)
"""
IN_ORDER = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, dim=12):
        super().__init__()
        self.first, self.second, self.third, self.last = (nn.Linear(dim, dim) for _ in range(4))

    def forward(self, inputs):
        hidden = self.first(inputs.softmax(2)).tanh()
        hidden = self.third(self.second(hidden).tanh()).tanh()
        return self.last(hidden)
"""


def test_a_fault_at_the_very_start_does_not_hide_which_weights_are_which(shell):
    """All that comes after it is wrong, and four layers of one shape are defined backwards: with
    the reference's value in its place the others are told apart."""
    Path("mine.py").write_text(IN_ANOTHER_ORDER.lstrip())
    Path("theirs.py").write_text(IN_ORDER)
    said = shell("diff", "mine.py:Net", "theirs.py:Net", "--json").json
    (named,) = said["diagnosis"]
    assert (named["line"], named["relation"]) == (11, "softmax-axis")
    assert said["weights"]["b.weight"] == "second.weight"
