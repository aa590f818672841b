"""Arguments of a call by the names of its parameters."""

from __future__ import annotations

import torch

from attnlab.tracer.bind_arguments import bound_arguments


def test_arguments_go_by_the_names_of_parameters():
    """Positions and keywords alike."""

    def f(x, mask=None):
        return x, mask

    assert bound_arguments(f, (1,), {"mask": 2}) == {"x": 1, "mask": 2}


def test_arguments_without_a_signature_are_numbered_from_zero():
    """What is written in C, or what does not fit, tells no names."""
    assert bound_arguments(torch.relu, (1, 2), {"out": 3}) == {"input0": 1, "input1": 2, "out": 3}
