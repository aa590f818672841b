"""What the text of a file compares along the wrong axis."""

import pytest

from attnlab.target.source_findings import source_findings


@pytest.mark.parametrize(
    ("made", "best", "found"),
    [
        ('torch.einsum("qie,dje->qdij", q, d)', "s.amax(dim=-2).sum(dim=-1)", True),
        ('torch.einsum("bqe,bde->bqd", query, docs)', "s.max(dim=1).values.sum(-1)", True),
        ("q @ d.transpose(-1, -2)", "torch.amax(s, -2).sum(-1)", True),
        ('torch.einsum("qie,dje->qdij", q, d)', "s.amax(dim=-1).sum(dim=-1)", False),
        ('torch.einsum("qie,dje->qdji", q, d)', "s.amax(dim=-2).sum(dim=-1)", False),
        ("d @ q.transpose(-1, -2)", "s.max(dim=-2).values.sum(-1)", False),
        ("a @ b.mT", "s.amax(dim=-2).sum(-1)", False),
    ],
)
def test_the_best_is_taken_of_the_document(made, best, found):
    """Whichever operand comes first; names that tell nothing raise nothing."""
    text = f"def maxsim(q, d):\n    s = {made}\n    s = s.masked_fill(m, -1)\n    return {best}\n"
    rules = [f.line for f in source_findings(text, "n.py") if f.rule == "late-interaction-turned"]
    assert rules == [4] * found
