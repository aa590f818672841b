"""What the text of a file says of numbers that are brought to mean 0 and back."""

import pytest

from attnlab.target.source_findings import source_findings


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("y = pred * mean + std", True),
        ("y = pred * self.data_mean + self.data_std", True),
        ("y = (x - stds[0]) / means[0]", True),
        ("y = x - mean / std", True),
        ("y = pred * std + mean", False),
        ("y = (x - mean) / std", False),
        ("y = x / std - mean / std", False),
        ("y = bias - mean / std", False),
        ("y = mean + std * noise", False),
        ("y = Normalize(-mean / std, 1 / std)", False),
        ("y = gain * mean + std * noise", False),
    ],
)
def test_mean_and_spread_have_their_places(text, found):
    """Draws around a mean and folded norms look alike and are right."""
    rules = [f.line for f in source_findings(text, "net.py") if f.rule == "scale-turned"]
    assert rules == [1] * found
