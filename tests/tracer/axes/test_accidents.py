"""Meetings of axes that should not be, each found at its line; and their right twins."""

import pytest
import torch
from followed import followed, told
from torch import nn

import attnlab

PLACES = "z = picture.permute(0, 2, 3, 1)\n"
SCORES = "s = q @ k.mT\n"
WRONG = {
    "heads split without transpose": ("x.reshape(B, H, S, hd)", [("reshape-cut", 1)]),
    "heads merged without transpose": ("q.reshape(B, S, D)", [("reshape-cut", 1)]),
    "a view for a transpose": ("x.view(S, B, D)", [("reshape-cut", 1)]),
    "heads behind their features": (
        "x.view(B, S, H, hd).transpose(2, 3).reshape(B, S, D)",
        [("merge-order", 1)],
    ),
    "softmax over queries": (f"{SCORES}w = s.softmax(-2)\nw @ v", [("softmax-axis", 2)]),
    "softmax over heads": (f"{SCORES}w = s.softmax(1)\nw @ v", [("softmax-axis", 2)]),
    "softmax over the batch": ("x.softmax(0)", [("softmax-axis", 1)]),
    "weights transposed": (f"{SCORES}w = s.softmax(-1)\nw.mT @ v", [("softmax-axis", 3)]),
    "a softmax by hand over queries": (
        f"{SCORES}e = s.exp()\nw = e / e.sum(-2, keepdim=True)\nw @ v",
        [("softmax-axis", 3)],
    ),
    "a sum over the batch": ("torch.einsum('bsd,bte->sdte', x, x)", [("batch-contraction", 1)]),
    "attention over the batch": (
        "z = x.transpose(0, 1)\nF.scaled_dot_product_attention(z, z, z)",
        [("batch-contraction", 2)],
    ),
    "attention along heads": (
        "z = x.view(B, S, H, hd)\nF.scaled_dot_product_attention(z, z, z)",
        [("attention-axis", 2)],
    ),
    "a mean over the batch": ("m = x.mean(0)\nx - m", [("batch-contraction", 1)]),
    "a running sum over the batch": ("x.cumsum(0)", [("batch-contraction", 1)]),
    "positions by entry": ("x + W.table[:B][:, None]", [("position-on-batch", 1)]),
    "counted by entry": ("x + torch.arange(B)[:, None, None]", [("position-on-batch", 1)]),
    "key heads tiled": ("z = kv.repeat(1, 3, 1, 1)\nq @ z.mT", [("head-order", 1)]),
    "key heads tiled before fused attention": (
        "z = kv.repeat(1, 3, 1, 1)\nF.scaled_dot_product_attention(q, z, z)",
        [("head-order", 1)],
    ),
    "a mask on the queries alone": (
        f"{SCORES}s = s.masked_fill(pad[:, None, :, None], -1e9)\ns.softmax(-1)",
        [("mask-no-effect", 2)],
    ),
    "the batch twice": ("(x @ x.mT).masked_fill(mask[:, None], 0)", [("silent-broadcast", 1)]),
    "masks repeated in another order": (
        "s = (q @ k.mT).flatten(0, 1)\ns.masked_fill(mask.repeat(H, 1, 1), 0)",
        [("axes-meet", 2)],
    ),
}
WRONG |= {
    "windows without a permute": (f"{PLACES}z.reshape(-1, 4, 4, 5)", [("reshape-cut", 2)]),
    "windows merged without a permute": (
        f"{PLACES}z = z.view(B, 2, 4, 3, 4, 5)\nz.reshape(-1, 16, 5)",
        [("reshape-cut", 3)],
    ),
    "channels reshaped behind places": (
        "c = F.conv2d(picture, torch.randn(42, 5, 4, 4), stride=4)\nc.reshape(B, 6, 42)",
        [("reshape-cut", 2)],
    ),
    "a roll of batch and height": (
        f"{PLACES}torch.roll(z, (-2, -2), (0, 1))",
        [("roll-axes", 2)],
    ),
    "a roll of width and channels": (
        f"{PLACES}torch.roll(z, (-2, -2), (2, 3))",
        [("roll-axes", 2)],
    ),
    "heads of (S, B) taken out as of (B, S)": (
        "z = x.transpose(0, 1).contiguous()\nz.view(B * H, S, hd)",
        [("reshape-cut", 2)],
    ),
    "one entry for all": ("x[0] + x", [("batch-contraction", 1)]),
    "heads merged without transpose behind a class token": (
        """z = torch.cat([x[:, :2] * 0, x], 1).view(B, S + 2, H, hd).transpose(1, 2)
z.reshape(B, S + 2, D)""",
        [("reshape-cut", 2)],
    ),
}
RIGHT = {
    "windows of a sequence": "x[:, :10].reshape(B, 5, 2, D).reshape(B * 5, 2, D)",
    "merged neighbours": "x[:, :10].reshape(B, 5, 2 * D)",
    "halves of pairs in either order": "x.view(B, S, 21, 2).transpose(2, 3).reshape(B, S, D)",
    "a relative shift": (
        "s = F.pad(q @ k.mT, (1, 0))\ns.view(B, H, 12, 11)[:, :, 1:].view(B, H, S, S)"
    ),
    "positions": "x + W.table[:S]",
    "slopes": "q @ k.mT + W.slopes[:, None, None] * torch.arange(S)",
    "a stable softmax": (
        f"{SCORES}e = (s - s.amax(-1, keepdim=True)).exp()\n(e / e.sum(-1, keepdim=True)) @ v"
    ),
    "a mask on keys and one on queries": (
        f"{SCORES}s = s.masked_fill(pad[:, None, None], -1e9)\n"
        "s = s.masked_fill(pad[:, None, :, None], -1e9)\ns.softmax(-1)"
    ),
    "heads repeated for each key head": "q @ kv.repeat_interleave(3, 1).mT",
    "one key head": "q @ kv[:, :1].repeat(1, H, 1, 1).mT",
    "linear attention": "k.softmax(-2).mT @ v",
    "a contrast over the batch": "e = x.mean(1)\n(e @ e.T).softmax(-1)",
    "attention over channels": "(x.mT @ x).softmax(-1) @ x.mT",
    "tokens as rows": "x.reshape(-1, D) @ torch.randn(42, 5)",
    "sizes of a batch": "ids.cumsum(0)",
    "slots share an input": "w = (q @ k.mT).softmax(-2)\nw = w / w.sum(-1, keepdim=True)\nw @ v",
}


@pytest.mark.parametrize("case", WRONG)
def test_an_accident_is_told_at_its_line(case):
    """Shape and values look right; the axes give it away."""
    code, findings = WRONG[case]
    assert told(followed(code)) == findings


def test_patches_that_are_cut_by_a_reshape_alone_join_channels_with_rows():
    """Its axes are numbers, and the sides of a picture are places all the same."""

    class Patches(nn.Module):
        def forward(self, x):
            return x.reshape(2, 16, 256)

    trace = attnlab.trace(Patches(), torch.randn(2, 4, 32, 32), dims="x: B 4 32 32").trace
    assert [f.rule for f in trace.findings] == ["reshape-cut"]


def test_places_of_a_picture_without_names_are_no_channels():
    """A spectrogram has frames that nobody names, and a convolution makes places of them."""

    class Patches(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(1, 20, 4, stride=4)

        def forward(self, x):
            return self.conv(x.unsqueeze(1)).reshape(2, -1, 20)

    trace = attnlab.trace(Patches(), torch.randn(2, 16, 24)).trace
    assert [f.rule for f in trace.findings] == ["reshape-cut"]


@pytest.mark.filterwarnings("ignore:The use of `x.T`")
def test_a_batch_whose_axes_are_all_reversed():
    """`x.T` is the transpose of a matrix, and of a batch it is not."""
    (found,) = followed("y.T").findings
    assert (found.rule, found.severity) == ("axes-reversed", "warning")
    assert "(B, T, D) became (D, T, B)" in found.message
    assert told(followed("W.tokens.weight.T")) == []


@pytest.mark.parametrize("case", RIGHT)
def test_what_looks_alike_and_is_right_is_not_told(case):
    """A finding on correct code costs more trust than a missed one."""
    assert told(followed(RIGHT[case])) == []


def test_a_sum_in_another_file_is_named_with_its_file(tmp_path):
    """Its line alone would be looked up in the file of the softmax."""
    made = {}
    for name, body in {"weigh": "return s.softmax(-2)", "mix": "return w @ s"}.items():
        text, path = f"def {name}(s, w=None):\n    {body}\n", str(tmp_path / f"{name}.py")
        exec(compile(text, path, "exec"), made)

    class Net(nn.Module):
        def forward(self, x):
            return made["mix"](x, made["weigh"](x @ x.mT))

    trace = attnlab.trace(Net(), torch.randn(3, 7, 4), dims="x: B S D")
    (found,) = (f for f in trace.findings if f.rule == "softmax-axis")
    assert found.file.endswith("weigh.py")
    assert "matmul at mix.py:2 sums over axis" in found.message


def test_a_message_names_axes_and_sizes():
    """It says which axis was cut, and what moves axes instead."""
    (found,) = followed("q.reshape(B, S, D)").findings
    assert "(B, H, S, hd)" in found.message
    assert "cuts axis S (11)" in found.message
    assert "transpose" in found.message
