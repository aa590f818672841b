"""Views that name the axes of a tensor in another order than that of memory."""

from textwrap import dedent

import pytest

from attnlab.target.source_findings import source_findings

COLUMNS = """
def forward(self, img):
    f = self.cnn(img)
    b, c, h, w = f.size()
    {moved}
    return f.{view}
"""
HEADS = """
def forward(self, x):
    B, T, C = x.shape
    q = self.q_proj(x)
    q = q.{view}
    return q
"""


def lines(text):
    found = source_findings(dedent(text), "a.py")
    return [f.line for f in found if f.rule == "reshape-moves-axes"]


@pytest.mark.parametrize(
    ("moved", "view", "expected"),
    [
        ("pass", "view(b, w, c * h)", [6]),
        ("pass", "reshape((b, h * w, c))", [6]),
        ("pass", "view(b, c * h, w)", []),
        ("f = f.permute(0, 3, 1, 2)", "reshape(b, w, c * h)", []),
    ],
)
def test_a_view_keeps_the_order_of_axes(moved, view, expected):
    """Columns of a map become steps of time only when they are moved there first."""
    assert lines(COLUMNS.format(moved=moved, view=view)) == expected


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        ("view(B, self.heads, T, C // self.heads)", [5]),
        ("view(B, T, self.heads, C // self.heads).transpose(1, 2)", []),
    ],
)
def test_heads_are_cut_from_the_last_axis(view, expected):
    """The heads of a layer's output stand behind the positions."""
    assert lines(HEADS.format(view=view)) == expected


def test_a_skew_is_meant():
    """The padded rows of relative attention are read anew on purpose."""
    text = """
    def skew(self, padded):
        b, h, rows, cols = padded.shape
        return padded.view(b, h, cols, rows)
    """
    assert lines(text) == []


@pytest.mark.parametrize(
    ("made", "found"),
    [
        ("grid.reshape(1, self.dim, g, g)", True),
        ("grid.view(1, -1, g, g)", True),
        ("grid.transpose(1, 2).reshape(1, self.dim, g, g)", False),
        ("grid.reshape(1, g, g, self.dim).permute(0, 3, 1, 2)", False),
        ("grid.reshape(1, g, g, -1)", False),
    ],
)
def test_a_table_of_positions_is_permuted_to_an_image(made, found):
    """Its rows are positions: channels come first by a permute alone."""
    text = (
        "class Net(nn.Module):\n    def __init__(self, dim, n):\n"
        "        self.pos = nn.Parameter(torch.zeros(1, 1 + n * n, dim))\n\n"
        "    def at(self, g):\n        first, grid = self.pos[:, :1], self.pos[:, 1:]\n"
        f"        grid = {made}\n        return F.interpolate(grid, (9, 9))\n"
    )
    lines = [f.line for f in source_findings(text, "net.py") if f.rule == "reshape-moves-axes"]
    assert lines == [7] * found


@pytest.mark.parametrize(
    ("axes", "made", "found"),
    [
        ("B, N, C", "x.view(B, C, H, W)", True),
        ("B, C, N", "x.view(B, C, H, W)", False),
        ("B, N, C", "x.transpose(1, 2).view(B, C, H, W)", False),
        ("B, N, C", "x.view(B, N, heads, C // heads)", False),
        ("B, N, C", "x.view(B, H, W, C)", False),
    ],
)
def test_tokens_are_transposed_to_an_image(axes, made, found):
    """(B, N, C) has its channels last, whatever is asked for."""
    text = f"def to_map(x, H, W):\n    {axes} = x.shape\n    return {made}\n"
    lines = [f.line for f in source_findings(text, "net.py") if f.rule == "reshape-moves-axes"]
    assert lines == [3] * found
