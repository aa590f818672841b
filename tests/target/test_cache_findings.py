"""Positions and masks of a forward with a cache."""

from textwrap import dedent

import pytest

from attnlab.target.source_findings import source_findings

TABLE = """
class Decoder(nn.Module):
    def forward(self, x, cache=None):
        {count}
        x = self.tokens(x) + self.positional_embedding[{rows}]
        return self.block(x, cache)
"""
TRIANGLE = """
def forward(data, mems):
    mlen, qlen = mems[0].size(1), data.size(1)
    klen = mlen + qlen
    return torch.triu(torch.ones(qlen, klen, dtype=torch.bool), diagonal={diagonal})
"""


def rules(text):
    return [(f.rule, f.line) for f in source_findings(dedent(text), "a.py")]


@pytest.mark.parametrize(
    ("count", "rows", "expected"),
    [
        ("pass", ": x.shape[1]", [("positions-ignore-cache", 5)]),
        ("n = len(cache)", "n : n + x.shape[1]", []),
    ],
)
def test_rows_of_a_table_begin_behind_the_cache(count, rows, expected):
    """A slice from 0 puts every new token at the beginning, as arange(T) does."""
    assert rules(TABLE.format(count=count, rows=rows)) == expected


@pytest.mark.parametrize(
    ("diagonal", "expected"), [("1", [("causal-ignores-cache", 5)]), ("1 + mlen", [])]
)
def test_a_triangle_is_shifted_by_the_memory(diagonal, expected):
    """Else query i sees the first keys of the memory, and not itself."""
    assert rules(TRIANGLE.format(diagonal=diagonal)) == expected
