"""What a call returned is told by what it is, whatever it is, and nothing of it runs."""

import pytest
import torch
from torch import nn

from attnlab.candidate.describe_output import kind, output

PAIR = "a float32 tensor of shape (2, 3)"


class Sub(torch.Tensor):
    pass


class Shy:
    def __repr__(self):
        raise SystemExit


class ShyKey(str):
    __slots__ = ()

    def __repr__(self):
        raise SystemExit


async def awaited(x):
    return x


def yielding(x):
    yield x


X = torch.ones(2, 3)


@pytest.mark.parametrize(
    ("out", "told"),
    [
        (None, "None"),
        (3.5, "a float"),
        (3, "an int"),
        ([], "an empty list"),
        ([X], f"a list with {PAIR}"),
        ((X, None), f"a tuple with {PAIR} and None"),
        ((X, X, 1, 2), f"a tuple with {PAIR}, {PAIR}, an int and more"),
        ({"out": X, 3: X}, "a dict with 'out' and an int"),
        ({ShyKey("a"): X}, "a dict with a ShyKey"),
        (Shy(), "a Shy"),
        ([Shy()], "a list with a Shy"),
        ([[X]], "a list with a list"),
        (X.to("meta"), f"{PAIR} on the meta device"),
        (X.to_sparse(), "a float32 sparse_coo tensor of shape (2, 3)"),
        (X.as_subclass(Sub), "a Sub, a subclass of Tensor"),
        (yielding(X), "a generator: its forward has a `yield`"),
        (awaited(X), "a coroutine: its forward is an `async def`"),
    ],
)
def test_each_kind_has_its_words(out, told):
    """Containers with what is in them, tensors with type, shape and place, the rest by its type."""
    assert kind(out) == told


@pytest.mark.filterwarnings("ignore:.*nested")
def test_a_nested_tensor_is_no_plain_one():
    """Its shape cannot be asked for, so it is named before anybody does."""
    nested = torch.nested.nested_tensor([X, X])
    assert output(nested) == {"kind": "a nested tensor"}


def test_a_long_name_is_cut():
    """It is the candidate's to choose."""
    assert len(kind(type("A" * 5000, (), {})())) < 50


def test_a_tensor_or_a_parameter_is_copied():
    """What the module writes into its output later must not show."""
    for out in (torch.ones(2), nn.Parameter(torch.ones(2))):
        told = output(out)["output"]
        with torch.no_grad():
            out.zero_()
        assert torch.equal(told, torch.ones(2))
        assert not told.requires_grad
