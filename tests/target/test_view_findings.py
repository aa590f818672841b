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
