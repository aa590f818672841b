"""What the text of a file says of temperatures."""

import pytest

from attnlab.target.source_findings import source_findings

LOSS = """
def info_nce(a, b, {name}={value}):
    z = F.normalize(torch.cat([a, b]), dim=-1)
    {scores}
    return F.cross_entropy(sim, torch.arange(len(z)))
"""
SELF = """
class Loss(nn.Module):
    def __init__(self, temperature=0.07):
        self.temperature = {kept}
    def forward(self, a, b):
        logits = torch.einsum('nd,md->nm', a, b) * self.temperature
        return F.cross_entropy(logits, torch.arange(len(a)))
"""
DISTIL = """
def distil(student, teacher, T):
    soft = F.softmax(teacher {sign} T, dim=-1)
    return F.kl_div(F.log_softmax(student {sign} T, -1), soft, reduction='batchmean') * T * T
"""


def lines(text):
    return [f.line for f in source_findings(text, "a.py") if f.rule == "temperature-multiplied"]


@pytest.mark.parametrize(
    ("scores", "value", "found"),
    [
        ("sim = z @ z.t() * {}", "0.1", True),
        ("sim = {} * torch.matmul(z, z.T)", "0.5", True),
        ("raw = z @ z.T; sim = raw.masked_fill(eye, -9) * {}", "7e-2", True),
        ("sim = F.cosine_similarity(z[:, None], z[None], dim=-1) * {}", "0.05", True),
        ("sim = z @ z.t() / {}", "0.1", False),
        ("sim = z @ z.t() * {}", "20.0", False),
        ("sim = z @ z.t() * {}", "None", False),
        ("sim = z @ z.t() * (1 / {})", "0.1", False),
        ("z = z * {}; sim = z @ z.t()", "0.1", False),
    ],
)
@pytest.mark.parametrize("name", ["temperature", "tau"])
def test_cosines_are_divided_by_a_small_temperature(scores, value, name, found):
    """A number above 1 is a scale whatever its name, and of what is not known nothing is said."""
    text = LOSS.format(name=name, value=value, scores=scores.format(name))
    assert lines(text) == [4] * found
    assert lines(text.replace(name, "inv_temperature")) == []


@pytest.mark.parametrize(
    ("kept", "found"), [("temperature", True), ("nn.Parameter(torch.ones(1))", False),
                        ("1 / temperature", False)]
)  # fmt: skip
def test_a_temperature_may_be_learned_or_turned_round(kept, found):
    """It has then another value than its argument."""
    assert lines(SELF.format(kept=kept)) == [6] * found


@pytest.mark.parametrize(("sign", "found"), [("*", [3, 4]), ("/", [])])
def test_teacher_and_student_are_softened(sign, found):
    """Whatever the temperature is; the square that weighs the loss is no part of it."""
    assert lines(DISTIL.format(sign=sign)) == found
