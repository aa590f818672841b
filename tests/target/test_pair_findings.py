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
        ("aa[:, :, None] + bb[:, None] - 2 * a @ b.mT", "gap.topk(k).indices", [5]),
        ("-2 * a @ b.mT + aa.unsqueeze(2)\n    gap += bb", "torch.topk(gap, k)[1]", [6]),
        ("aa[:, :, None] - 2 * torch.matmul(a, b.mT)", "gap.topk(k).indices", [5]),
        ("torch.norm(a[:, None] - b, dim=-1)", "gap.topk(k).indices", [5]),
        ("2 * a @ b.mT - aa[:, :, None] - bb[:, None]", "gap.topk(k).indices", []),
        ("torch.norm(a, dim=-1)", "gap.topk(k).indices", []),
        ("aa", "gap.topk(k).indices", []),
        ("(a - b).pow(2).sum(-1)", "gap.topk(k).indices", []),
        ("torch.cdist(a, b)", "gap.argsort(-1, descending=True)[:, :k]", [3]),
        ("torch.cdist(a, b)", "gap.argsort(-1)[:, :k]", []),
        ("torch.cdist(a, b)", "gap.argmax(-1)", [3]),
    ],
)
def test_the_nearest_are_the_smallest_distances(made, taken, lines):
    """Negated distances and similarities have the nearest on top; norms, and errors row by row,
    are no distances, and the largest of them may be meant."""
    norms = "    aa = a.pow(2).sum(-1)\n    bb = (b * b).sum(-1)\n" if lines != [3] else ""
    text = f"def near(a, b, k):\n{norms}    gap = {made}\n    return {taken}\n"
    assert lines_of(text, "far-neighbours") == lines
    text = text.replace("argmax", "topk")
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


@pytest.mark.parametrize(
    ("returned", "found"),
    [
        ("a.pow(2).sum(-1) - 2 * a @ b.mT + b.pow(2).sum(-1)", True),
        ("(a[:, None] - b).pow(2).sum(-1).sqrt()", True),
        ("((a - b) ** 2).sum(-1)", True),
        ("2 * a @ b.mT - a.pow(2).sum(-1) - b.pow(2).sum(-1)", False),
        ("-((a - b) ** 2).sum(-1)", False),
        ("-torch.cdist(a, b)", False),
        ("a @ b.mT", False),
    ],
)
def test_a_distance_of_ones_own_has_a_sign(returned, found):
    """Squares that are added grow with the distance; a function may return them negated."""
    text = (
        f"def sq_dist(a, b):\n    return {returned}\n\n"
        "def near(a, b, k):\n    d = sq_dist(a, b)\n    return d.topk(k).indices\n"
    )
    assert lines_of(text, "far-neighbours") == [6] * found


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        ("F.mse_loss(q.detach(), z)", "F.mse_loss(z, q.detach())", True),
        ("(q.detach() - z).pow(2).mean()", "((z - q.detach()) ** 2).mean()", True),
        ("F.mse_loss(q, z.detach())", "F.mse_loss(z, q.detach())", False),
        ("F.mse_loss(p, y.detach())", "F.mse_loss(r, x.detach())", False),
        ("q - z.detach()", "z + (q - z).detach()", False),
    ],
)
def test_two_terms_detach_two_sides(one, other, found):
    """A codebook is moved by the one, and an encoder by the other."""
    text = f"def loss(z, q):\n    a = {one}\n    b = {other}\n    return a + 0.25 * b\n"
    assert lines_of(text, "detached-twice") == [2] * found
