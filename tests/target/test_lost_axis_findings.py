"""What the text of a file says of a tensor that lost an axis and meets what it was taken of."""

import pytest

from attnlab.target.source_findings import source_findings


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("return (pos[:, -1] - pos).clamp(max=8)", 2),
        ("last = pos[:, -1]; pos = pos.float()\n    return pos - last", 0),
        ("last = pos[:, -1].float()\n    return pos.float() - last", 3),
        ("pos -= pos[:, 0]", 2),
        ("return torch.eq(pos, pos[:, :, 0])", 2),
        ("return pos == pos[:, 3]", 2),
        ("return pos - pos.amax(dim=1)", 2),
        ("return pos - pos.max(1).values", 2),
        ("return pos / pos.norm(dim=1)", 2),
        ("top = pos.max(1)[0]\n    return (pos - top).exp()", 3),
        ("return pos - pos.mean((2, 3))", 2),
        ("return pos[:, -1:] - pos", 0),
        ("return pos[:, -1, None] - pos", 0),
        ("return pos[0] - pos", 0),
        ("return pos[:, -1] - pos[:, 0]", 0),
        ("return pos[:, -1].unsqueeze(1) - pos", 0),
        ("return pos[..., -1] - pos", 0),
        ("return (pos.T - pos[:, -1]).T", 0),
        ("pos = torch.arange(9)[None]\n    return pos[:, -1] - pos", 0),
        ("return pos - pos.mean(0)", 0),
        ("return pos - pos.mean(1, keepdim=True)", 0),
        ("return pos / pos.norm(1)", 0),
        ("return pos - pos.mean(-1)", 0),
        ("return pos - pos.mean()", 0),
        ("adj = pos\n    return adj / adj.sum(1)", 0),
    ],
)
def test_what_lost_an_axis_does_not_meet_what_has_it(body, line):
    """The first axis may go, the last of a vector too; columns of square tables may be meant."""
    found = source_findings(f"def back(pos):\n    {body}\n", "net.py")
    assert [f.line for f in found if f.rule == "axis-lost"] == [line] * bool(line)
