"""What the text of a file says of convolutions that are padded and cut."""

import pytest

from attnlab.target.source_findings import source_findings


def lines_of(text, rule):
    return [f.line for f in source_findings(text, "net.py") if f.rule == rule]


LAYER = """
class CausalConv(nn.Module):
    def __init__(self, a, b, kernel_size, dilation=1):
        super().__init__()
        self.pad = (kernel_size - 1) * dilation
        self.conv = nn.Conv1d(a, b, kernel_size, padding={pad}, dilation=dilation)

    def forward(self, x):
        T = x.shape[-1]
        {body}
"""


@pytest.mark.parametrize(
    ("pad", "body", "found"),
    [
        ("self.pad", "return self.conv(x)[..., self.pad:]", True),
        ("self.pad", "return self.conv(x)[:, :, self.pad:].contiguous()", True),
        ("(kernel_size - 1) * dilation", "return F.relu(self.conv(x))[:, :, self.pad:]", True),
        ("self.pad", "return self.conv(x)[..., -T:]", True),
        ("self.pad", "return self.conv(x)[:, :, -x.size(2):]", True),
        ("self.pad", "return self.conv(x).transpose(1, 2)[:, self.conv.padding[0]:]", True),
        ("self.pad", "return self.conv(x)[..., :-self.pad]", False),
        ("self.pad", "return self.conv(x)[..., :T]", False),
        ("self.pad", "return self.conv(x)[..., -1:]", False),
        ("self.pad", "return self.conv(x)[..., self.pad:-self.pad]", False),
        ("self.pad", "x = self.conv(x)[..., :T]\n        return x[..., self.pad:]", False),
        ("self.pad // 2", "return self.conv(x)[..., self.pad:]", False),
        ("0", "return self.conv(F.pad(x, (self.pad, 0)))[..., -T:]", False),
    ],
)
def test_a_causal_convolution_keeps_its_front(pad, body, found):
    """What a convolution padded on both sides gives last reads inputs that come later."""
    body = body.replace("return", "y =", 1) + "\n        return y" if "\n" not in body else body
    text = LAYER.format(pad=pad, body=body)
    assert lines_of(text, "cut-in-front") == [10] * found
    assert lines_of(text.replace("CausalConv", "LookaheadConv"), "cut-in-front") == []


@pytest.mark.parametrize(
    ("cut", "found"), [("self.size:", True), (":-self.size", False), (":, :-self.size", False)]
)
def test_a_module_that_cuts_keeps_the_front_too(cut, found):
    """As the Chomp1d of temporal convolutional networks."""
    text = f"""
class Chomp1d(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size = size
    def forward(self, x):
        return x[:, :, {cut}].contiguous()

class Block(nn.Module):
    def __init__(self, a, b, kernel_size, dilation, padding):
        super().__init__()
        self.conv = nn.Conv1d(a, b, kernel_size, padding=padding, dilation=dilation)
        self.net = nn.Sequential(self.conv, Chomp1d(padding), nn.ReLU())

def stack(k, n):
    return [Block(8, 8, k, 2**i, padding=(k - 1) * 2**i) for i in range(n)]
"""
    assert lines_of(text, "cut-in-front") == [7] * found


@pytest.mark.parametrize(
    ("name", "pad", "body", "found"),
    [
        ("CausalConv", "'same'", "return self.conv(x)", True),
        ("CausalConv", "kernel_size // 2", "return self.conv(x)", True),
        ("CausalConv", "kernel_size // 2", "return self.conv(F.pad(x, (self.pad, 0)))", False),
        ("CausalConv", "kernel_size // 2", "return self.conv(x)[..., :T]", False),
        ("Conv", "'same'", "return self.conv(x)", False),
        ("NonCausalConv", "'same'", "return self.conv(x)", False),
        ("CausalConv", "'same' if not causal else 0", "return self.conv(x)", False),
    ],
)
def test_a_causal_convolution_is_not_centred(name, pad, body, found):
    """Padding by half lets each position read as much of what comes later as of what came."""
    text = LAYER.format(pad=pad, body=body).replace("CausalConv", name)
    assert lines_of(text, "padded-ahead") == [6] * found
