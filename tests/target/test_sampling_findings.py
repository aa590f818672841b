"""How the text of a file chooses the next token."""

from textwrap import dedent

import pytest

from attnlab.target.source_findings import source_findings

NUCLEUS = """
def top_p(logits, p):
    ranked, order = torch.sort(logits, descending=True)
    remove = ranked.softmax(-1).cumsum(-1) > p
    {back}
    return {out}
"""


@pytest.mark.parametrize(
    ("back", "out", "lines"),
    [
        ("pass", "logits.masked_fill(remove, -1e9)", [6]),
        ("logits[remove] = -1e9", "logits", [5]),
        ("remove = remove.scatter(1, order, remove)", "logits.masked_fill(remove, -1e9)", []),
        ("ranked[remove] = -1e9", "ranked.gather(1, order.argsort(1))", []),
    ],
)
def test_a_mask_over_sorted_scores_is_taken_back(back, out, lines):
    """Top-p masks stand in the order of the sort; the vocabulary has another one."""
    found = source_findings(dedent(NUCLEUS.format(back=back, out=out)), "a.py")
    assert [f.line for f in found if f.rule == "sampling"] == lines
