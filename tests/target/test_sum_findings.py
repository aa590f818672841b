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


SUM = "torch.einsum('nlhd,nhd->nlh', q, k.sum(1))"


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (f"z = {SUM} + self.eps; out = out * z[..., None]", True),
        (f"z = {SUM} + 1e-6; out = torch.einsum('nlhd,nhdm,nlh->nlhm', q, kv, z)", True),
        (f"d_inv = {SUM}; out = out * d_inv.unsqueeze(-1)", True),
        ("den = (q * k_sum).sum(-1, keepdim=True).clamp(min=eps); out = num * den", True),
        ("den = q @ k.sum(-2, keepdim=True).mT + eps; out *= den", True),
        (f"out = (q @ kv) * ({SUM} + eps)[..., None]", True),
        (f"z = {SUM} + self.eps; out = out / z[..., None]", False),
        (f"z = 1 / ({SUM} + eps); out = out * z[..., None]", False),
        (f"z = {SUM} + eps; out = out * z.reciprocal()", False),
        (f"z = {SUM} + eps; out = out * z ** -1", False),
        (f"z = {SUM} + eps; norm = weight * z; out = out / norm", False),
        (f"z = {SUM} + eps; out = a * z; mean = out / z", False),
        (f"z = {SUM} + eps; return scale * z", False),
        ("std = x.std(-1) + eps; x = x * std + mean", False),
        ("gate = q @ k.sum(1); out = v * gate", False),
    ],
)
def test_a_normaliser_divides(body, found):
    """Sums over keys that are kept from zero, or have the name of one, by any product; what is
    turned over, joins a divisor, or gives back a spread is right."""
    text = f"def forward(self, q, k, out):\n    {body}\n"
    rules = [f.line for f in source_findings(text, "n.py") if f.rule == "normaliser-multiplied"]
    assert rules == [2] * found
