"""What the text of a file says of pairs."""

import pytest

from attnlab.target.source_findings import source_findings


def lines_of(text, rule):
    return [f.line for f in source_findings(text, "net.py") if f.rule == rule]


@pytest.mark.parametrize(
    ("made", "taken", "lines"),
    [
        ("torch.cdist(a, b)", "gap.topk(k, dim=-1).indices", [3]),
        ("torch.cdist(a, b)", "torch.topk(gap, k).indices", [3]),
        ("torch.cdist(a, b)", "gap.topk(k, largest=False).indices", []),
        ("torch.cdist(a, b)", "torch.topk(gap, k, -1, False).indices", []),
        ("torch.cdist(a, b)", "(-gap).topk(k).indices", []),
        ("-torch.cdist(a, b)", "gap.topk(k).indices", []),
        ("a @ b.mT", "gap.topk(k).indices", []),
        ("torch.cdist(a, b)\n    gap = -gap", "gap.topk(k).indices", []),
    ],
)
def test_the_nearest_are_the_smallest_distances(made, taken, lines):
    """Negated distances and similarities have the nearest on top."""
    text = f"def near(a, b, k):\n    gap = {made}\n    return {taken}\n"
    assert lines_of(text, "far-neighbours") == lines
    assert lines_of(text.replace("def near", "def hardest"), "far-neighbours") == []


@pytest.mark.parametrize(
    ("first", "then", "lines"),
    [
        ("F.cross_entropy(logits, at)", "F.cross_entropy(logits, at)", [3]),
        ("F.cross_entropy(logits, at)", "F.cross_entropy(logits.t(), at)", []),
        ("F.cross_entropy(logits, at)\n    logits = logits.t()", "F.cross_entropy(logits, at)", []),
        ("F.cross_entropy(logits, at)\n    logits, at = other", "F.cross_entropy(logits, at)", []),
        ("F.cross_entropy(net(x), at)", "F.cross_entropy(net(x), at)", []),
    ],
)
def test_both_directions_of_a_loss_are_there(first, then, lines):
    """The same call twice is one direction; what was turned in between is the other."""
    text = (
        f"def loss(logits, at):\n    one = {first}\n    two = {then}\n    return (one + two) / 2\n"
    )
    assert lines_of(text, "one-direction-twice") == lines
