"""attnlab.diff: two modules beside each other in the user's own process."""

import inspect

import pytest
import torch
from torch import nn

import attnlab
from attnlab.errors import PropertyFailed, Refused
from attnlab.testing import assert_matches


class Right(nn.Module):
    """Causal attention by the fused kernel."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(12, 36), nn.Linear(12, 12)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, 3, 4)).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).flatten(2))


class Sharp(Right):
    """The same by hand, with a wrong scale."""

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, 3, 4)).permute(2, 0, 3, 1, 4)
        scores = q @ k.mT / q.shape[-1]
        future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        weights = scores.masked_fill(future, -torch.inf).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).flatten(2))


X = torch.randn(2, 5, 12)
LINE = inspect.getsourcelines(Sharp)[1] + 5


def test_the_line_that_parts_is_named_and_shown():
    """The same records as those of the command, and its page at a prompt and in a notebook."""
    found = attnlab.diff(Sharp(), Right(), X)
    (wrong,) = found.diagnosis
    assert (wrong.line, wrong.relation) == (LINE, "scale")
    assert wrong.file.endswith("test_api_diff.py")
    assert "q.shape[-1]" in wrong.source
    assert f"{LINE} scale" in repr(found)
    assert "2 times too small" in str(found)
    assert "Sharp beside Right" in found._repr_html_()


def test_neither_module_is_touched():
    """Copies are called; random numbers go on."""
    mine, theirs = Sharp().train(), Right().half()
    held = [t.clone() for t in (*mine.parameters(), *theirs.parameters())]
    state = torch.get_rng_state()
    attnlab.diff(mine, theirs, "x: B S D", sizes={"D": 12})
    after = (*mine.parameters(), *theirs.parameters())
    assert all(torch.equal(a, b) for a, b in zip(held, after, strict=True))
    assert torch.equal(state, torch.get_rng_state())
    assert mine.training


def test_functions_are_compared():
    """What has no weights."""

    def softmax(scores):
        shifted = scores.exp()
        return shifted / shifted.sum(-2, keepdim=True)

    found = attnlab.diff(softmax, lambda s: s.softmax(-1), "scores: B S S")
    assert "sum" in found.diagnosis[0].source
    same = attnlab.diff(torch.tanh, lambda x: x.tanh(), X)
    assert same.outcome == "same"
    assert "gradients" in same.report.message
    nothing = attnlab.diff(lambda x: x / 0 * 0, lambda x: x * torch.nan, X)
    assert "both give NaN" in nothing.report.message


def test_other_weights_are_no_wrong_line():
    """As they are, two modules with other weights differ everywhere."""
    found = attnlab.diff(Right(), Right(), X, weights="kept")
    assert (found.outcome, found.diagnosis) == ("different", ())
    assert "qkv.weight" in found.report.message
    same = Right()
    assert attnlab.diff(same, same, X, weights="kept").outcome == "same"


def test_what_cannot_be_compared_is_said():
    """A crash with its place, weights that do not fit, inputs that say too little."""

    def broken(x):
        return x @ x

    found = attnlab.diff(broken, lambda x: x, X)
    assert found.outcome == "crashed"
    assert "test_api_diff.py" in found.report.message
    assert attnlab.diff(nn.Linear(12, 12), nn.Linear(12, 7), X).outcome == "cannot-compare"
    with pytest.raises(Refused, match="no input"):
        attnlab.diff(Right(), Right())


def test_an_assertion_names_the_line():
    """Of a test that fails the message is that of the comparison."""
    with pytest.raises(PropertyFailed) as failed:
        assert_matches(Sharp(), Right(), X, seed=1)
    assert f"test_api_diff.py:{LINE}" in failed.value.page
    assert "2 times too small" in failed.value.page
