"""What goes against the side on which a file pads its sequences."""

from textwrap import dedent

import pytest

from attnlab.target.source_findings import source_findings

SERIES = """
def collate(rows, width):
    out = np.zeros((len(rows), width))
    for i, row in enumerate(rows):
        out[i, {place}] = row
    return out

def forward(self, seq):
    h = self.encode(seq)
    last = (seq != 0).sum(dim=1) - 1
    return h[torch.arange(len(seq)), last]
"""
MASKED = """
'''Sessions are {side}-padded.'''
def forward(self, seq):
    causal = torch.ones(5, 5, dtype=torch.bool).tril()
    allowed = causal & (seq != 0)[:, None]
    {own}
    return self.scores(seq).masked_fill(~allowed, float("-inf")).softmax(-1)
"""


def rules(text):
    return [(f.rule, f.line) for f in source_findings(dedent(text), "a.py")]


@pytest.mark.parametrize(
    ("place", "expected"),
    [("width - len(row):", [("end-of-left-padding", 11)]), (": len(row)", [])],
)
def test_a_sequence_that_is_padded_in_front_ends_at_the_end(place, expected):
    """Its last token is no function of its length."""
    assert rules(SERIES.format(place=place)) == expected


@pytest.mark.parametrize(
    ("side", "own", "expected"),
    [
        ("left", "pass", [("empty-rows", 5)]),
        ("right", "pass", []),
        ("left", "allowed = allowed | torch.eye(5, dtype=torch.bool)", []),
    ],
)
def test_rows_of_padding_see_themselves(side, own, expected):
    """Else a causal mask leaves them nothing, and softmax makes NaN."""
    assert rules(MASKED.format(side=side, own=own)) == expected
