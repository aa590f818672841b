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


@pytest.mark.parametrize(
    ("scaled", "init", "found"),
    [
        ("x * scale.unsqueeze(1) + shift.unsqueeze(1)", "zeros_(b.ada[-1].weight)", True),
        ("scale[:, None] * x + shift[:, None]", "constant_(self.mod.weight, 0)", True),
        ("x * (1 + scale[:, None]) + shift[:, None]", "zeros_(b.ada[-1].weight)", False),
        ("x * scale[:, None] + shift[:, None]", "normal_(b.ada[-1].weight)", False),
        ("x * scale + shift", "zeros_(b.ada.weight); nn.init.ones_(b.ada.bias)", False),
        ("x * self.scale + self.shift", "zeros_(b.ada.weight)", False),
    ],
)
def test_a_scale_that_begins_at_zero_is_one_more(scaled, init, found):
    """A scale that is learned from 1, or drawn, may be the factor itself."""
    text = f"def modulate(x, shift, scale):\n    return {scaled}\n\nnn.init.{init}\n"
    rules = [f.rule for f in source_findings(text, "net.py")]
    assert rules == ["scale-from-zero"] * found
