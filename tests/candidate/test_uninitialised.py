"""Memory that nobody wrote shows, whatever way it was asked for."""

import pytest
import torch
from modules import made, module, randn

from attnlab.candidate.uninitialised import NewBooleansAreFalse, allocates, new_memory_is_nan

X = randn(2, 3)
NEW = {
    "empty": lambda: torch.empty(2, 3),
    "new_empty": lambda: X.new_empty(2, 3),
    "empty_like": lambda: torch.empty_like(X),
    "Tensor": lambda: torch.Tensor(2, 3),
    "empty_strided": lambda: torch.empty_strided((2, 3), (3, 1)),
    "resize_": lambda: X.new_zeros(0).resize_(2, 3),
}
ASKED = {"name": "Net", "init": {"width": 3}, "seed": 0}


@pytest.mark.parametrize("way", NEW)
def test_new_memory_is_nan(way):
    """Every way to ask for some; what is written is as it was, and so is the process after it."""
    with new_memory_is_nan():
        found, written = NEW[way](), torch.nn.Linear(3, 2)(X)
    assert found.isnan().all()
    assert written.isfinite().all()
    assert not torch.are_deterministic_algorithms_enabled()


def test_the_mode_of_the_process_comes_back():
    """Also where it was another, and after an exception."""
    torch.set_deterministic_debug_mode("error")
    try:
        with pytest.raises(KeyError), new_memory_is_nan():
            raise KeyError
        assert torch.get_deterministic_debug_mode() == 2
    finally:
        torch.set_deterministic_debug_mode("default")


def test_booleans_have_two_values():
    """True by themselves, False in the other mode."""
    with new_memory_is_nan():
        assert torch.empty(9, dtype=torch.bool).all()
        with NewBooleansAreFalse():
            for made_ in (torch.empty(9, dtype=torch.bool), X.new_empty(9, dtype=torch.bool)):
                assert not made_.any()
            assert torch.ones(3, dtype=torch.bool).all()


def test_a_text_that_cannot_ask_for_booleans_is_called_once():
    """Names decide; where they are not known, it may."""
    assert allocates(None)
    assert allocates({"torch", "empty_like"})
    assert not allocates({"torch", "Tensor", "zeros"})
    session = made(module("return x"))
    session.reachable_names = frozenset({"zeros"})
    assert len(session.ask("uninitialised_memory", **ASKED, inputs=[[("x", X)]])["answers"]) == 1


def test_what_begins_unwritten_is_named_and_what_is_read_is_nan():
    """With the parameters of the module that is there, which stays."""
    session = made(
        module(
            "return self.bias + x.new_empty(3, dtype=torch.bool)",
            "self.bias = nn.Parameter(torch.empty(width))",
        ),
        width=3,
    )
    session.ask("set_parameters", tensors={"bias": torch.ones(3)})
    kept = session.target
    told = session.ask("uninitialised_memory", **ASKED, inputs=[[("x", X)]])
    assert told["begun"] == ["bias"]
    assert [answer["output"].tolist() for answer in told["answers"]] == [[2.0] * 3, [1.0] * 3]
    assert session.target is kept
