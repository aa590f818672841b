"""How the text of a file chooses the next token."""

from textwrap import dedent

import pytest

from attnlab.target.source_findings import source_findings

NUCLEUS = """
def top_p(logits, p):
    ranked, order = torch.sort(logits, descending=True)
    remove = ranked.softmax(-1).cumsum(-1) > p
    {back}
    return {out}
"""


@pytest.mark.parametrize(
    ("back", "out", "lines"),
    [
        ("pass", "logits.masked_fill(remove, -1e9)", [6]),
        ("logits[remove] = -1e9", "logits", [5]),
        ("remove = remove.scatter(1, order, remove)", "logits.masked_fill(remove, -1e9)", []),
        ("ranked[remove] = -1e9", "ranked.gather(1, order.argsort(1))", []),
    ],
)
def test_a_mask_over_sorted_scores_is_taken_back(back, out, lines):
    """Top-p masks stand in the order of the sort; the vocabulary has another one."""
    found = source_findings(dedent(NUCLEUS.format(back=back, out=out)), "a.py")
    assert [f.line for f in found if f.rule == "sampling"] == lines


@pytest.mark.parametrize(
    ("sigmas", "scale", "found"),
    [
        ("betas", "sigmas[i]", True),
        ("betas.sqrt()", "sigmas[i]", False),
        ("betas.sqrt()", "betas[i]", True),
        ("betas", "sigmas[i] ** 0.5", False),
    ],
)
def test_noise_is_scaled_by_a_deviation(sigmas, scale, found):
    """Not by the variance of a step."""
    text = f"""
alphas_bar = torch.cumprod(1 - betas, 0)
sigmas = {sigmas}
def sample(x):
    for i in reversed(range(9)):
        mean = model(x, i)
        x = mean + {scale} * noise
    return x
"""
    rules = [f.rule for f in source_findings(text, "net.py")]
    assert rules == ["variance-as-deviation"] * found


@pytest.mark.parametrize(
    ("scale", "found"),
    [
        ("(1 - alphas[i]) / (1 - sums[i])", True),
        ("betas[i] / (1 - sums[i]).sqrt()", False),
        ("(1 - sums[i - 1]) / (1 - sums[i])", False),
    ],
)
def test_noise_is_taken_away_as_a_deviation(scale, found):
    """What is predicted has variance 1, and x holds it times a square root."""
    text = f"""
sums = torch.cumprod(alphas, 0)
def sample(x, i):
    share = {scale}
    return (x - share * eps) / alphas[i].sqrt()
"""
    rules = [f.rule for f in source_findings(text, "net.py")]
    assert rules == ["variance-as-deviation"] * found


@pytest.mark.parametrize(
    ("token", "found"),
    [
        ("torch.multinomial(top.softmax(-1), 1)", True),
        ("ids.gather(1, torch.multinomial(top.softmax(-1), 1))", False),
        ("torch.multinomial(logits.softmax(-1), 1)", False),
    ],
)
def test_a_place_among_the_best_is_no_token(token, found):
    """The ids that topk returns say which token stands there."""
    text = f"""
def sample(model, token):
    for _ in range(9):
        logits = model(token)[:, -1]
        top, ids = logits.topk(5, dim=-1)
        token = {token}
    return token
"""
    assert [f.rule for f in source_findings(text, "net.py")] == ["sampling"] * found
