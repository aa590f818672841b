"""What the text of a file says of noise that is added by a schedule."""

import pytest

from attnlab.target.source_findings import source_findings

TEXT = """
alpha_bar = torch.cumprod(1 - betas, 0)
{name} = {value}
def add_noise(x, t, noise):
    a = alpha_bar[t].view(-1, 1)
    b = 1 - a
    return {noised}
"""


def lines(text):
    return [f.line for f in source_findings(text, "net.py") if f.rule == "noise-without-root"]


@pytest.mark.parametrize(
    ("noised", "found"),
    [
        ("a.sqrt() * x + (1 - a) * noise", True),
        ("torch.sqrt(a) * x + b * noise", True),
        ("a ** 0.5 * x + (1 - a) * noise", True),
        ("a * x + (1 - a).sqrt() * noise", True),
        ("a * x + (1 - a) * noise", True),
        ("alpha_bar[t].sqrt()[:, None] * x + (1 - alpha_bar[t])[:, None] * noise", True),
        ("a.sqrt() * x + (1 - a).sqrt() * noise", False),
        ("a.sqrt() * x + b.sqrt() * noise", False),
        ("a * x + (1 - a ** 2).sqrt() * noise", False),
        ("decay * x + (1 - decay) * new", False),
        ("(1 - t) * x + t * noise", False),
        ("a.sqrt() * (1 - prev) / (1 - a) * x + prev.sqrt() * beta / (1 - a) * noise", False),
    ],
)
def test_coefficients_are_roots(noised, found):
    """Averages and straight paths have none, and an AR process squares within the root."""
    assert lines(TEXT.format(name="n", value="0", noised=noised)) == [7] * found


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("sqrt_one_minus_alpha_bar", "1 - alpha_bar", True),
        ("self.sqrt_alpha_bar", "alpha_bar", True),
        ("sqrt_alpha_bar", "torch.cumprod(alphas, 0)", True),
        ("sqrt_one_minus_alpha_bar", "(1 - alpha_bar).sqrt()", False),
        ("sqrt_alpha_bar", "alpha_bar ** 0.5", False),
        ("sqrt_alpha_bar_t", "extract(self.sqrt_alpha_bar, t)", False),
        ("sqrt_alpha_bar_t", "self.sqrt_alpha_bar[t]", False),
        ("sqrt_recip", "1 / roots", False),
    ],
)
def test_a_root_is_one(name, value, found):
    """A name that says so is believed by all who use it."""
    assert lines(TEXT.format(name=name, value=value, noised="x")) == [3] * found
