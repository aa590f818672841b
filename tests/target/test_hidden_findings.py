"""What the text of a file says of models that fill in what is hidden."""

import pytest

from attnlab.target.source_findings import source_findings

TEXT = """
def hide(x, keep, tokens, mask_id):
    {hide}
def loss(pred, target, mask):
    loss = (pred - target).pow(2).mean(-1)
    seen = 1 - mask
    {loss}
"""
ONES = "mask = torch.ones(n, l); mask[:, :keep] = 0"
ZEROS = "mask = torch.zeros(n, l); mask.scatter_(1, keep_ids, 1)"
MEAN = "return (loss * {0}).sum() / {0}.sum()".format


@pytest.mark.parametrize(
    ("hide", "loss", "found"),
    [
        (ONES, MEAN("(1 - mask)"), True),
        (ONES, MEAN("seen"), True),
        (ZEROS, MEAN("mask"), True),
        (ZEROS, "return (loss * mask).sum() / mask.sum().clamp(min=1)", True),
        ("tokens[mask] = mask_id", "return F.cross_entropy(pred[~mask], target[~mask])", True),
        ("x = torch.where(mask[..., None], mask_token, x)", "return loss[~mask].mean()", True),
        (ONES, MEAN("mask"), False),
        (ZEROS, MEAN("(1 - mask)"), False),
        ("tokens[mask] = mask_id", "return F.cross_entropy(pred[mask], target[mask])", False),
        ("mask = torch.ones(n, l); mask[:, length:] = 0", MEAN("mask"), False),
        ("tokens[mask] = pad_id", "return loss[~mask].mean()", False),
        (ONES, "a = (loss * seen).sum() / seen.sum(); " + MEAN("mask") + " + a", False),
    ],
)
def test_the_loss_is_of_what_is_hidden(hide, loss, found):
    """Masks of padding mean something else, and a loss may have a term for each part."""
    text = TEXT.format(hide=hide, loss=loss)
    rules = [f.line for f in source_findings(text, "net.py") if f.rule == "loss-of-what-is-seen"]
    assert rules == [7] * found
