"""Special tokens: ids of 0 that count as none, ends that no loss asks for, tokens misread."""

import pytest

from attnlab.target.source_findings import source_findings

LOSS = """
{ids}
def train(logits, y):
    return F.cross_entropy(logits, y, ignore_index={ignored})
"""
VIT = """
class ViT(nn.Module):
    def __init__(self, d):
        self.cls = nn.Parameter(torch.zeros(1, 1, d))

    def forward(self, x):
        x = torch.cat([{parts}], dim=1)
        x = self.blocks(x)
        return self.head(x{read})
"""
TOKEN = "self.cls.expand(len(x), -1, -1)"


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("pad = config.pad_token_id or config.eos_token_id", ["zero-is-none"]),
        ("pad = pad_id or 1", ["zero-is-none"]),
        ("pad = config.pad_token_id or 0", []),
        ("name = config.name or 'model'", []),
        ("pad = eos if pad_id is None else pad_id", []),
    ],
)
def test_an_id_that_may_be_zero_is_no_truth_value(text, rules):
    """`or` takes the other id where padding is 0, and what would give 0 changes nothing."""
    assert [f.rule for f in source_findings(text, "a.py")] == rules


@pytest.mark.parametrize(
    ("ids", "ignored", "lines"),
    [
        ("EOS = 3; PAD = EOS", "PAD", [2]),
        ("tok.pad_token_id = tok.eos_token_id", "tok.pad_token_id", [2]),
        ("eos_id = 3", "eos_id", [4]),
        ("PAD, EOS = 0, 1", "PAD", []),
        ("EOS = 3; PAD = EOS", "-100", []),
    ],
)
def test_an_end_that_the_loss_ignores_is_told(ids, ignored, lines):
    """Where padding is the end token, and that is what is ignored."""
    found = source_findings(LOSS.format(ids=ids, ignored=ignored), "a.py")
    assert [(f.rule, f.line) for f in found] == [("ends-ignored", n) for n in lines]


@pytest.mark.parametrize(
    ("parts", "read", "lines"),
    [
        (f"x, {TOKEN}", "[:, 0]", [9]),
        (f"{TOKEN}, x", "[:, -1]", [9]),
        (f"{TOKEN}, x", "[:, 0]", []),
        (f"x, {TOKEN}", "[:, -1, :]", []),
        (f"{TOKEN}, x", "[:, 1:].mean(1)", []),
        ("x, self.patch(y)", "[:, 0]", []),
    ],
)
def test_a_class_token_is_read_where_it_was_put(parts, read, lines):
    """In front and first, or at the end and last."""
    found = source_findings(VIT.format(parts=parts, read=read), "a.py")
    assert [(f.rule, f.line) for f in found] == [("result-unread", n) for n in lines]
