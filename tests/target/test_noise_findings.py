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


TABLES = """
class Schedule:
    def __init__(self, betas):
        {made}
    def add_noise(self, x, t, eps):
        ab = self.abar[t]
        return {noised}
"""
MADE = """self.abar = torch.cumprod(1 - betas, 0)
        self.kept, self.noisy = self.abar.sqrt(), (1 - self.abar).sqrt()"""


@pytest.mark.parametrize(
    ("noised", "found"),
    [
        ("self.abar[t][:, None] * x + (1 - self.abar[t]).sqrt()[:, None] * eps", True),
        ("ab * x + (1 - ab).sqrt() * eps", True),
        ("take(self.abar, t) * x + take(1 - self.abar, t).sqrt() * eps", True),
        ("take(self.abar, t) * x + take(self.noisy, t) * eps", True),
        ("self.abar.gather(0, t).sqrt() * x + (1 - self.abar.gather(0, t)) * eps", True),
        ("self.kept[t] * x + self.noisy[t] * eps", False),
        ("ab.sqrt() * x + self.noisy[t] * eps", False),
        ("self.abar[t] * x + self.noisy[t] * mean", False),
        ("ab * x + (1 - ab ** 2).sqrt() * eps", False),
    ],
)
def test_a_product_of_any_name_has_a_root(noised, found):
    """What cumprod gives is known by its making, and so is a table of roots."""
    assert lines(TABLES.format(made=MADE, noised=noised)) == [8] * found
    buffers = "self.register_buffer('abar', (1 - betas).cumprod(0))"
    if "kept" not in noised and "noisy" not in noised:
        assert lines(TABLES.format(made=buffers, noised=noised)) == [7] * found


@pytest.mark.parametrize(
    ("made", "found"),
    [
        ("bar = torch.cumprod(betas, 0); alphas = 1 - betas", True),
        ("self.bar = self.betas.cumprod(dim=0); a = 1.0 - self.betas", True),
        ("noise = torch.linspace(1e-4, 0.02, n); bar = np.cumprod(noise)", True),
        ("bar = torch.cumprod(1 - betas, 0)", False),
        ("betas = 1 - torch.linspace(1e-4, 0.02, n); bar = betas.cumprod(0); a = 1 - betas", False),
        ("alphas = 1 - betas; bar = alphas.cumprod(0)", False),
        ("betas = torch.linspace(0.9, 0.99, n); kept = torch.cumprod(betas, 0)", False),
        ("seen = torch.cumprod(1 - alpha + 1e-10, -1)", False),
    ],
)
def test_a_sample_is_kept_by_a_product_of_alphas(made, found):
    """Of betas it is 0 at once; names are asked for only where 1 - beta stands somewhere."""
    rules = [f.line for f in source_findings(made, "net.py") if f.rule == "product-of-betas"]
    assert rules == [1] * found
