"""What the text of a block shows, each wrong line beside its right twin."""

import pytest

from attnlab.target.source_findings import source_findings

BLOCK = """
class Mix(nn.Module):
    def forward(self, x):
        {mix}

class Block(nn.Module):
    def __init__(self, d):
        self.first, self.last = Mix(d), Mix(d)
        self.{part} = Mix(d)

    def forward(self, x):
        x = x + self.first(x)
        {call}
        x = x + self.last(x)
        return x
"""


@pytest.mark.parametrize(
    ("call", "mix", "part", "found"),
    [
        ("x = self.conv(x)", "return self.w(x)", "conv", True),
        ("x = x + self.conv(x)", "return self.w(x)", "conv", False),
        ("x = self.conv(x)", "return x + self.w(x)", "conv", False),
        ("x = self.norm(x)", "return self.w(x)", "norm", False),
        ("kept = x; x = self.conv(x); x = x + kept", "return self.w(x)", "conv", False),
    ],
)
def test_a_sublayer_among_residuals_is_added(call, mix, part, found):
    """Unless it adds itself, keeps what it was given, or is a norm."""
    text = BLOCK.format(call=call.replace("; ", "\n        "), mix=mix, part=part)
    rules = [f.rule for f in source_findings(text, "net.py")]
    assert rules == ["residual-missing"] * found


@pytest.mark.parametrize(
    ("made", "found"),
    [("t = stamps.float()", True), ("t = stamps", False), ("t = offsets.float()", False)],
)
def test_stamps_are_subtracted_as_whole_numbers(made, found):
    """float32 has steps of 128 seconds beside those since 1970."""
    text = f"def gaps(stamps, offsets):\n    {made}\n    return t[:, 1:] - t[:, :-1]\n"
    assert [f.rule for f in source_findings(text, "net.py")] == ["dtype-narrowed"] * found
