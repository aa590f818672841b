"""Arguments of a call by the names of its parameters."""

from __future__ import annotations

from threading import Lock

import torch

from attnlab.tracer.bind_arguments import bound_arguments, repeatable_call


def test_arguments_go_by_the_names_of_parameters():
    """Positions and keywords alike."""

    def f(x, mask=None):
        return x, mask

    assert bound_arguments(f, (1,), {"mask": 2}) == {"x": 1, "mask": 2}


def test_arguments_without_a_signature_are_numbered_from_zero():
    """What is written in C, or what does not fit, tells no names."""
    assert bound_arguments(torch.relu, (1, 2), {"out": 3}) == {"input0": 1, "input1": 2, "out": 3}


class Cache:
    """Grows with each call, as the caches of transformers do; its tensors may have a graph."""

    def __init__(self, keys: torch.Tensor, lock: object = None) -> None:
        self.layers, self.lock = [{"keys": keys}], lock


def grow(x, cache):
    cache.layers[0]["keys"] = torch.cat((cache.layers[0]["keys"], x))
    return cache.layers[0]["keys"]


def test_a_call_can_be_repeated_though_it_fills_an_object():
    """Each repetition finds the cache as it was given, and so does the caller afterwards: a view
    that runs the call again would otherwise see other shapes than the rows that it adds to."""
    cache = Cache(torch.ones(2, 3, requires_grad=True) * 2)
    tensors, call = repeatable_call(grow, (torch.zeros(1, 3), cache), {})
    assert [len(call([*tensors.items()])) for _ in range(3)] == [3, 3, 3]
    assert len(cache.layers[0]["keys"]) == 2


def test_what_cannot_be_copied_is_shared():
    """A lock cannot; the call is made all the same."""
    tensors, call = repeatable_call(grow, (torch.zeros(1, 3), Cache(torch.ones(2, 3), Lock())), {})
    assert len(call([*tensors.items()])) == 3
