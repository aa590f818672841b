"""attnlab.verify: properties of a module in the user's own process."""

import pytest
import torch
from torch import nn

import attnlab
from attnlab.errors import Refused


class Mixing(nn.Module):
    """Attention between samples: layers of torch take the sequence first unless told otherwise."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(12, 3)

    def forward(self, x):
        return self.attention(x, x, x)[0]


X = torch.randn(3, 7, 12)


def test_what_is_found_is_a_record_and_a_page():
    """The same records as those of the command, and its page at a prompt and in a notebook."""
    found = attnlab.verify(Mixing(), X, dims="x: B S D")
    assert "batch-independence" in {check.id for check in found.broken}
    assert repr(found).startswith("<properties of Mixing: batch-independence")
    assert "Samples of a batch do not mix" in str(found)
    assert "properties of Mixing" in found._repr_html_()


def test_axes_that_nobody_named_are_no_reason_to_blame():
    """(S, B, D) is as good a reading: it is told that the property was not looked at."""
    found = attnlab.verify(Mixing(), X)
    assert not found.broken
    unsure = {c.id for c in found.properties if c.outcome == "error"}
    assert "batch-independence" in unsure
    assert not attnlab.verify(Mixing(), X, dims="x: S B D").broken


def test_promises_are_corrected():
    """What the user promises is looked at, what the user denies is not."""
    model = nn.TransformerEncoderLayer(12, 3, batch_first=True)
    assert [c.id for c in attnlab.verify(model, X, promises=["causal"]).broken] == ["causality"]
    assert not attnlab.verify(model, X, promises=["causal"], no_promises=["causality"]).broken
    with pytest.raises(Refused):
        attnlab.verify(model, X, promises=["casual"])


def test_keyword_arguments_are_the_modules_own():
    """They reach forward as they are."""
    model = nn.TransformerEncoderLayer(12, 3, batch_first=True)
    mask = nn.Transformer.generate_square_subsequent_mask(7)
    found = attnlab.verify(model, X, src_mask=mask)
    assert "src_mask is a triangle" in found.promises[0].reason
    assert not found.broken
