"""Formulas as the text of a file has them."""

from textwrap import dedent

import pytest

from attnlab.target.source_findings import source_findings

SKEW = """
def skew(scores):
    {pad}
    b, h, rows, cols = wide.shape
    return wide.view(b, h, {axes})[:, :, 1:, :]
"""
LOW_RANK = """
class Adapter(nn.Module):
    def __init__(self, rank, width):
        self.a = nn.Parameter(torch.zeros(rank, width))
        self.b = nn.Parameter(torch.zeros(width, rank))
        {draw}

    def forward(self, x):
        return self.base(x) + x @ self.a.T @ self.b.T
"""
WINDOWS = """
class Block(nn.Module):
    def forward(self, x):
        y = torch.roll(x, (-self.shift, -self.shift), (1, 2))
        {first} = torch.roll(x, (-self.shift, -self.shift), (1, 2))
        y = self.attend(y)
        y = torch.roll(y, ({sign}self.shift, {sign}self.shift), (1, 2))
        return x + y
"""


def rules(text):
    return [(f.rule, f.line) for f in source_findings(dedent(text), "a.py")]


@pytest.mark.parametrize(
    ("pad", "expected"),
    [
        ("wide = F.pad(scores, (0, 1))", [("distance-bias", 3)]),
        ("wide = F.pad(scores, (1, 0))", []),
        ("z = scores.new_zeros(1); wide = torch.cat([scores, z], -1)", [("distance-bias", 3)]),
        ("z = scores.new_zeros(1); wide = torch.cat([z, scores], -1)", []),
    ],
)
def test_a_skew_pads_at_the_left(pad, expected):
    """As Music Transformer and Transformer-XL do, whichever way the column comes in."""
    assert rules(SKEW.format(pad=pad, axes="cols, rows")) == expected


@pytest.mark.parametrize(
    ("draw", "expected"), [("", [("initialization", 4)]), ("nn.init.normal_(self.a)", [])]
)
def test_of_two_factors_one_begins_with_random_values(draw, expected):
    """Where both are zero, so is the gradient of each."""
    assert rules(LOW_RANK.format(draw=draw)) == expected


@pytest.mark.parametrize(("sign", "expected"), [("-", [("rolled-on", 7)]), ("", [])])
def test_shifted_windows_are_shifted_back(sign, expected):
    """The same shift of another tensor, as of a mask, is none of the second."""
    assert rules(WINDOWS.format(first="mask", sign=sign)) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("f = torch.exp(-c * (torch.arange(0, half) // half))", [("whole-quotient", 1)]),
        ("f = torch.exp(-c * (torch.arange(0, half).float() / half))", []),
        ("rows = torch.arange(n) // width", []),
    ],
)
def test_a_share_is_no_quotient_of_whole_numbers(line, expected):
    """All of it would be 0; rows of a grid are whole numbers, and meant."""
    assert rules(line) == expected


@pytest.mark.parametrize(
    ("dtype", "note", "expected"),
    [
        ("x.dtype", "runs in bfloat16", [("dtype-narrowed", 3)]),
        ("x.dtype", "runs as it is", []),
        ("torch.float32", "runs in bfloat16", []),
    ],
)
def test_positions_are_counted_in_a_dtype_that_holds_them(dtype, note, expected):
    """bfloat16 ends at 256; where a file is run in float32 alone, nothing is wrong."""
    text = f"def angles(x, n):\n    '''{note}'''\n    return torch.arange(n, dtype={dtype})\n"
    assert rules(text) == expected


@pytest.mark.parametrize(
    ("cut", "lines"), [("s = s.detach()", [5]), ("h = h.detach()", []), ("pass", [])]
)
def test_a_prediction_is_fed_back_as_it_is(cut, lines):
    """Detached, later losses teach nothing of how they came about."""
    loop = f"    for k in range(9):\n        s = f(s)\n        out.append(s)\n        {cut}\n"
    text = f"def roll(s):\n{loop}"
    assert [line for rule, line in rules(text) if rule == "gradient-cut"] == lines


NORM = """
class LayerNorm2d(nn.Module):
    def forward(self, x):
        mean = x.mean({axis}, keepdim=True)
        return self.weight[:, None, None] * (x - mean)
"""
STREAM = """
def forward(self, x):
    {first}
    {second}
    {third}
    {fourth}
    return x
"""


@pytest.mark.parametrize(("axis", "expected"), [("-1", [("norm-axis-of-map", 4)]), ("1", [])])
def test_a_norm_of_channels_runs_over_them(axis, expected):
    """Its weights say which axis the channels are."""
    assert rules(NORM.format(axis=axis)) == expected
    assert not rules(NORM.format(axis=axis).replace("LayerNorm2d", "InstanceNorm"))
    flat = NORM.format(axis=axis).replace("x.mean", "x.flatten(2).mean")
    assert not rules(flat)


def test_the_stream_runs_past_its_norms():
    """Norm, sum, norm, sum cuts it; post-norm, sum first, is another design."""
    parts = ("x = self.ln_1(x)", "x = x + self.attn(x)", "x = self.ln_2(x)", "x = x + self.mlp(x)")
    cut = STREAM.format(first=parts[0], second=parts[1], third=parts[2], fourth=parts[3])
    post = STREAM.format(first=parts[1], second=parts[0], third=parts[3], fourth=parts[2])
    assert rules(cut) == [("norm-in-the-stream", 3)]
    assert rules(post) == []


@pytest.mark.parametrize(
    ("before", "inside", "lines"),
    [
        ("pass", "state = [(h.detach(), c.detach()) for h, c in state]", [5]),
        ("state = [(h.detach(), c.detach()) for h, c in state]", "pass", []),
        ("pass", "kept.append([h.detach() for h, c in state])", []),
    ],
)
def test_a_state_is_detached_once_and_not_at_every_step(before, inside, lines):
    """Truncated where a sequence is continued, and not between its steps."""
    text = f"""def forward(self, x, state):
    kept = []
    {before}
    for t in range(x.shape[1]):
        {inside}
        for i, cell in enumerate(self.cells):
            h, c = cell(x[:, t], state[i])
            state[i] = (h, c)
    return state
"""
    assert [line for rule, line in rules(text) if rule == "gradient-cut"] == lines


@pytest.mark.parametrize(
    ("kind", "pad", "found"),
    [
        ("CausalConv", "(0, self.ahead)", True),
        ("CausalConv", "[0, (self.k - 1) * self.dilation]", True),
        ("CausalConv", "(self.ahead, 0)", False),
        ("CausalConv", "(0, n - x.shape[-1])", False),
        ("Lookahead", "(0, self.ahead)", False),
        ("Conv", "(0, self.ahead)", False),
    ],
)
def test_a_causal_convolution_is_padded_in_front(kind, pad, found):
    """Padding to a length, and looking ahead on purpose, raise nothing."""
    text = (
        f"class {kind}(nn.Module):\n    def __init__(self, k, d):\n"
        "        self.ahead = (k - 1) * d\n        self.conv = nn.Conv1d(9, 9, k, dilation=d)\n\n"
        f"    def forward(self, x):\n        return self.conv(F.pad(x, {pad}))\n"
    )
    found_lines = [f.line for f in source_findings(text, "net.py") if f.rule == "padded-ahead"]
    assert found_lines == [7] * found
