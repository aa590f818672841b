"""What reaches nothing, masks that hide nothing, sublayers without a sum: wrong and right twins."""

import sys
import types
from pathlib import Path

import pytest
import torch

import attnlab

HEAD = """
import math
import torch
import torch.nn.functional as F
from torch import nn

class Attention(nn.Module):
    def __init__(self, dim=12, heads=3):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)
        self.drop = nn.Dropout(0.1)
        self.register_buffer("tril", torch.tril(torch.ones(8, 8)))
        self.register_buffer("later", torch.ones(5, 5).triu(1).bool())

    def forward(self, x, mask=None):
        B, S, D = x.shape
        q, k, v = self.qkv(x).view(B, S, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / math.sqrt(D // self.heads)
        {mask}
        weights = {softmax}
        y = (weights @ v).transpose(1, 2).reshape(B, S, D)
        return self.out(y)
"""
RIGHT = {
    "mask": 'scores = scores.masked_fill(self.later, float("-inf"))',
    "softmax": "self.drop(scores.softmax(-1))",
}


def written(folder, text):
    """The classes of a file with this text, loaded as Python would."""
    path = folder / f"{folder.name}.py"
    path.write_text(text)
    module = types.ModuleType(folder.name)
    module.__file__ = str(path)
    sys.modules[folder.name] = module
    exec(compile(text, str(path), "exec"), module.__dict__)
    return module


def line_of(text, part):
    """The number of the line that holds the first line of `part`."""
    first = part.splitlines()[0]
    return next(n for n, line in enumerate(text.splitlines(), 1) if first in line)


def findings(folder, text, name="Attention", shape=(2, 5, 12)):
    module = getattr(written(folder, text), name)().eval()
    return [f for f in attnlab.trace(module, torch.randn(shape)).findings if f.rule != "scale"]


def attention(**changes):
    return HEAD.format(**{**RIGHT, **changes})


@pytest.mark.parametrize(
    ("rule", "changes"),
    [
        ("result-dropped", {"mask": 'scores.masked_fill(self.later, float("-inf"))'}),
        (
            "result-unread",
            {"mask": 'hidden = scores.masked_fill(self.later, float("-inf"))'},
        ),
        ("mask-value", {"mask": "scores = scores.masked_fill(self.later, 0)"}),
        ("mask-value", {"mask": "scores = scores.masked_fill(self.later, 1e-9)"}),
        ("mask-value", {"mask": "scores = scores + self.later.float()"}),
        (
            "mask-value",
            {"mask": "scores = torch.where(self.later, torch.zeros(()), scores)"},
        ),
        ("mask-multiplied", {"mask": "scores = scores * ~self.later"}),
        ("mask-multiplied", {"mask": "scores = scores * self.tril[:S, :S]"}),
        ("mask-undone", {"mask": "scores = scores.masked_fill(self.later, -1e9).tanh()"}),
        ("softmax-twice", {"softmax": "scores.softmax(-1).softmax(-1)"}),
        ("dropout-in-evaluation", {"softmax": "F.dropout(scores.softmax(-1), 0.1)"}),
    ],
)
def test_a_slip_on_the_way_to_the_weights_is_found_at_its_line(rule, changes, tmp_path):
    """One finding, a warning, at the line that was changed."""
    text = attention(**changes)
    found = [f for f in findings(tmp_path, text) if f.severity != "note"]
    assert [f.rule for f in found] == [rule]
    assert found[0].line == line_of(text, next(iter(changes.values())))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"mask": 'scores.masked_fill_(self.later, float("-inf"))'},
        {"mask": "scores = scores + torch.zeros(S, S).masked_fill(self.later, -1e9)"},
        {"mask": "scores = scores * ~self.later - 1e4 * self.later"},
        {"mask": "scores = 30 * (scores / 30).tanh()\n        scores[:, :, self.later] = -1e9"},
        {"mask": "mask = None"},
        {"softmax": "F.dropout(scores.softmax(-1), 0.1, self.training)"},
        {"softmax": "F.softmax(scores.float(), -1).to(x.dtype)"},
    ],
)
def test_the_same_written_rightly_raises_nothing(changes, tmp_path):
    """Masks in place, added, as a product that is sunk afterwards; dropout by the mode."""
    found = findings(tmp_path, attention(**changes))
    assert [(f.rule, f.message) for f in found if f.severity != "note"] == []


BLOCK = (
    attention()
    + """
class Block(nn.Module):
    def __init__(self, dim=12):
        super().__init__()
        self.attention, self.one, self.two = Attention(), nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 48), nn.GELU(), nn.Linear(48, dim))

    def forward(self, x):
        {first}
        {second}
        return x

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = {blocks}

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x
"""
)
SUMS = {
    "first": "x = x + self.attention(self.one(x))",
    "second": "x = x + self.mlp(self.two(x))",
    "blocks": "nn.ModuleList([Block() for _ in range(2)])",
}


@pytest.mark.parametrize(
    ("rule", "changes"),
    [
        ("residual-missing", {"first": "x = self.attention(self.one(x))"}),
        ("residual-missing", {"second": "x = self.mlp(self.two(x))"}),
        ("activation-missing", {"second": "x = x + self.mlp[2](self.mlp[0](self.two(x)))"}),
        ("layer-shared", {"blocks": "nn.ModuleList([Block()] * 2)"}),
        ("layers-in-list", {"blocks": "[Block() for _ in range(2)]"}),
    ],
)
def test_a_slip_in_a_stack_of_blocks_is_found_at_its_line(rule, changes, tmp_path):
    """Sums that are missing, and blocks that are one or are not registered."""
    text = BLOCK.format(**{**SUMS, **changes})
    (found,) = [f for f in findings(tmp_path, text, "Net") if f.rule == rule]
    assert (found.severity, found.line) == ("warning", line_of(text, next(iter(changes.values()))))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"first": "x = self.one(x + self.attention(x))", "second": "x = self.two(x + self.mlp(x))"},
        {"first": "h = self.one(x)", "second": "x = x + self.attention(h) + self.mlp(h)"},
        {"first": "x = x + self.one(self.attention(x))", "second": "x = x + self.two(self.mlp(x))"},
    ],
)
def test_blocks_with_their_sums_raise_nothing(changes, tmp_path):
    """Norm before, after, on the branch; both sublayers side by side."""
    text = BLOCK.format(**{**SUMS, **changes})
    found = findings(tmp_path, text, "Net")
    assert [(f.rule, f.message) for f in found if f.severity != "note"] == []


def test_attention_that_is_joined_to_its_input_is_added_with_it(tmp_path):
    """`x + mlp(cat([x, attention(x)]))` has one sum for both."""
    joined = "F.linear(torch.cat([x, h], -1), torch.ones(48, 24))"
    first, second = "h = self.attention(self.one(x))", f"x = x + self.mlp[2](F.gelu({joined}))"
    found = findings(tmp_path, BLOCK.format(**{**SUMS, "first": first, "second": second}), "Net")
    assert "residual-missing" not in [f.rule for f in found]


TIED = "self.a.weight = self.b.weight; self.a.weight = nn.Parameter(torch.ones(dim, dim))"
SCALED = "self.c = nn.Parameter(torch.ones(dim)) * 0.5"
RUN = "return self.b(self.a(x)) + END"
HELD = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, dim=12):
        super().__init__()
        self.a, self.b = nn.Linear(dim, dim), nn.Linear(dim, dim)
        {init}

    def forward(self, x, mask=None):
        {body}

class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Net()

    def forward(self, x):
        return self.net(x, mask=x[..., 0] > 0)
"""


def held(init, body):
    return HELD.format(init=init, body=body).replace("END", "(mask is None)")


@pytest.mark.parametrize(
    ("rule", "init", "body", "where"),
    [
        ("unused-parameter", "self.c = nn.Linear(dim, dim)", RUN, "init"),
        ("unused-parameter", "pass", "y, z = self.a(x), self.b(x); return y + END", "body"),
        ("unused-argument", "pass", "return self.b(self.a(x))", "forward"),
        ("parameter-not-registered", SCALED, "return self.b(self.a(x)) * self.c + END", "init"),
        ("tying-lost", TIED, RUN, "init"),
    ],
)  # fmt: skip
def test_what_a_module_holds_and_does_not_use_is_found(rule, init, body, where, tmp_path):
    """Layers that are never called, arguments that are not read, tensors that are no parameters."""
    text = held(init, body)
    found = [f for f in findings(tmp_path, text, "Outer") if f.severity != "note"]
    assert [f.rule for f in found] == [rule]
    place = {
        "init": init,
        "body": body.partition("END")[0],
        "forward": "def forward(self, x, mask",
    }[where]
    assert found[0].line == line_of(text, place)


@pytest.mark.parametrize(
    ("init", "body"),
    [
        ("self.a.weight = self.b.weight", RUN),
        ("self.token = nn.Parameter(torch.ones(dim))",
         "return self.b(self.a(x)) + END if True else self.token"),
        ("self.teacher = [nn.Linear(dim, dim)]", RUN),
        ("self.register_buffer('t', torch.ones(dim))", "return self.b(self.a(x)) * self.t + END"),
    ],
)  # fmt: skip
def test_what_is_held_for_good_reasons_raises_nothing(init, body, tmp_path):
    """Tied weights, a token for another branch, one frozen network hidden in a list, a buffer."""
    found = findings(tmp_path, held(init, body), "Outer")
    assert [(f.rule, f.message) for f in found if f.severity != "note"] == []


@pytest.mark.parametrize(
    ("scale", "severity"),
    [
        ("math.sqrt(D // self.heads)", None),
        ("math.sqrt(D)", "warning"),
        ("(D // self.heads)", "note"),
        ("1.0", "note"),
        ("(1 / math.sqrt(D // self.heads))", "warning"),
    ],
)
def test_the_number_that_scales_the_scores_is_judged(scale, severity, tmp_path):
    """The root of the head's width is right; that of the whole width is most likely a slip, one
    over the width itself a choice that some make."""
    text = attention().replace("math.sqrt(D // self.heads)", scale)
    net = written(tmp_path, text).Attention().eval()
    found = [f for f in attnlab.trace(net, torch.randn(2, 5, 12)).findings if f.rule == "scale"]
    assert [f.severity for f in found] == ([severity] if severity else [])


def test_findings_name_the_file_as_rows_do(tmp_path, monkeypatch):
    """Relative to the working folder, whether found in the flow or in the source of a class."""
    monkeypatch.chdir(tmp_path)
    text = BLOCK.format(**{**SUMS, "blocks": "[Block() for _ in range(2)]"})
    (found,) = [f for f in findings(tmp_path, text, "Net") if f.rule == "layers-in-list"]
    assert Path(found.file) == Path(f"{tmp_path.name}.py")


EMPTY = """
import torch
import torch.nn.functional as F
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(12, 12)

    def forward(self, x, mask=None):
        q = self.proj(x)
        see = torch.ones(5, 5).tril({diagonal}).bool()
        {attention}
"""
ATTENTIONS = (
    "return F.scaled_dot_product_attention(q, q, q, attn_mask=see)",
    "return ((q @ q.mT).masked_fill(~see, -1e9)).softmax(-1) @ q",
    "return (q @ q.mT).masked_fill(~see, -torch.inf).softmax(-1).nan_to_num() @ q",
)


@pytest.mark.parametrize("attention_", ATTENTIONS)
def test_a_query_without_a_key_is_found(attention_, tmp_path):
    """The diagonal is barred too: query 0 sees nothing, and no NaN tells of it."""
    found = findings(tmp_path, EMPTY.format(diagonal=-1, attention=attention_), "Net")
    assert ("no-visible-key", "warning") in [(f.rule, f.severity) for f in found]
    right = findings(tmp_path, EMPTY.format(diagonal=0, attention=attention_), "Net")
    assert "no-visible-key" not in [f.rule for f in right]


def test_a_mask_of_the_users_own_may_leave_a_query_alone():
    """Padding to the left bars the first keys of a causal mask: a note, and no alarm."""

    def attend(x, mask):
        return torch.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=mask)

    mask = torch.ones(2, 5, 5).tril().bool()
    mask[0, :, :2] = False
    found = attnlab.trace(attend, torch.randn(2, 5, 12), mask).findings
    assert [(f.rule, f.severity) for f in found] == [("no-visible-key", "note")]
    far = attnlab.trace(lambda x: (-1e6 * torch.cdist(x, x + 9)).softmax(-1), torch.randn(2, 5, 3))
    assert "no-visible-key" not in [f.rule for f in far.findings]


WINDOWS = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj, self.gate = nn.Linear(12, 12), nn.Linear(12, 12)

    def forward(self, x):
        y = self.proj(x)
        gate = self.gate(x)
        whole = x.shape[1] // {window} * {window}
        if gate[:, :whole].shape[1] > 0:
            return y[:, :whole] * gate[:, :whole].sigmoid()
        return y
"""


def test_a_layer_that_waits_for_a_longer_input_is_not_idle(tmp_path):
    """It gates windows of 8, and the sequence has 5: nothing is wrong with it."""
    found = findings(tmp_path, WINDOWS.format(window=8), "Net")
    assert [f.rule for f in found if f.severity != "note"] == []


STREAMS = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.MultiheadAttention(12, 3, batch_first=True) for _ in "ab")
        self.norms = nn.ModuleList(nn.LayerNorm(12) for _ in "ab")
        self.weight = nn.Parameter(torch.ones(12))
        self.mix = nn.Parameter(torch.randn(2, 2))

    def forward(self, x):
        two = torch.stack([x, x], -1)
        for norm, block in zip(self.norms, self.blocks):
            h = norm(x)
            y, _ = block(h, h, h, need_weights=False)
            {way}
        return x
"""
WAYS = (
    "x = self.weight * x + y",
    "x = x.to(y.device) + y",
    "two = two @ self.mix + torch.einsum('bsd,n->bsdn', y, self.mix[0]); x = two.sum(-1)",
)


@pytest.mark.parametrize("way", WAYS)
def test_a_residual_in_other_words_is_one(way, tmp_path):
    """Scaled by weights, moved to a device, or mixed of several streams."""
    found = findings(tmp_path, STREAMS.format(way=way), "Net")
    assert "residual-missing" not in [f.rule for f in found]


LEFT = """
import torch
from torch import nn

class Router(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(12, 12)
        self.balance = torch.zeros(())

    def forward(self, x):
        share = self.gate(x).softmax(-1)
        self.balance = share.mean((0, 1)).square().sum()
        return x * share
"""


def test_a_loss_that_is_left_for_the_caller_is_no_lost_weight(tmp_path):
    """The constructor sets it to 0, and forward to something that wants gradients."""
    net = written(tmp_path, LEFT).Router()
    net(torch.randn(2, 5, 12))
    found = attnlab.trace(net, torch.randn(2, 5, 12)).findings
    assert [f.rule for f in found if f.severity != "note"] == []


def test_a_lost_tie_is_told_where_the_new_tensor_is_made(tmp_path):
    """In another method than the one that ties; the line that ties is named too."""
    init = "self.a.weight = self.b.weight; self.reset()"
    text = held(init, RUN.replace(" + END", "")).replace(
        "    def forward",
        "    def reset(self):\n        self.b.weight = nn.Parameter(torch.ones(12, 12))\n\n"
        "    def forward",
        1,
    )
    (found,) = [f for f in findings(tmp_path, text, "Outer") if f.rule == "tying-lost"]
    lines = text.splitlines()
    assert "nn.Parameter" in lines[found.line - 1]
    assert init in lines[int(found.message.split("on line ")[1].split(",")[0]) - 1]


STACK = """
import torch
from torch import nn

class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(12, 12), nn.Linear(12, 12)

    def forward(self, h, x):
        return h + self.a(x).tanh(), x + self.b(h).tanh()

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Layer() for _ in range(3)])

    def forward(self, x):
        h = x
        for layer in self.layers:
            h, x = layer(h, x)
        return {out}
"""


@pytest.mark.parametrize(("out", "severities"), [("h", ["note"]), ("h + x", [])])
def test_what_only_the_last_layer_makes_for_a_next_one_is_a_note(out, severities, tmp_path):
    """Its second output has no layer to go to; in all others it is used."""
    found = findings(tmp_path, STACK.format(out=out), "Net")
    assert [f.severity for f in found if f.rule == "unused-parameter"] == severities


def test_tied_weights_elsewhere_say_nothing_of_the_blocks(tmp_path):
    """Only what stands beside the list says that its layers are one on purpose."""
    changes = {**SUMS, "blocks": "nn.ModuleList([Block()] * 2)"}
    text = BLOCK.format(**changes)
    wrong = text.replace("class Net(nn.Module):", "class Net(nn.Module):\n    # its head is tied")
    meant = text.replace(
        "        self.blocks", "        # all depths share it\n        self.blocks"
    )
    for written_, told in ((wrong, True), (meant, False)):
        rules = [f.rule for f in findings(tmp_path, written_, "Net")]
        assert ("layer-shared" in rules) == told
