"""Caches in each of the forms that a contract can declare, and calls that go on from one."""

import pytest
import torch
from modules import loaded, module

from attnlab.candidate.kv_cache import KVCache
from attnlab.records import Cache, plain

RETURNED = module(
    "total = x if cache is None else torch.cat((cache[0], x), 1)\n"
    "return total.sum(1, keepdim=True).expand_as(x), (total,)",
    head="self, x, cache=None",
)
GIVEN = """
import torch
from torch import nn

class Store:
    def __init__(self, room):
        self.room, self.seen = room, []

    def reorder(self, parents):
        self.seen = [t[parents] for t in self.seen]

class Net(nn.Module):
    def __init__(self, width):
        super().__init__()

    def new_store(self, batch, length):
        return Store((batch, length))

    def forward(self, x, store=None):
        seen = [x] if store is None else store.seen + [x]
        if store is not None:
            store.seen = seen
        return torch.cat(seen, 1).sum(1, keepdim=True).expand_as(x)
"""
INNER = (
    module(
        "self.seen = [*self.seen, x]\n"
        "return torch.cat(self.seen, 1).sum(1, keepdim=True).expand_as(x)",
        init="self.seen = []",
    )
    + """
    def reset(self):
        self.seen = []

    def turn(self, parents):
        self.seen = [t[parents] for t in self.seen]
"""
)
FORMS = {
    "returned": (RETURNED, Cache()),
    "given": (GIVEN, Cache(form="given", argument="store", new="new_store", reorder="reorder")),
    "inner": (INNER, Cache(form="inner", reset="reset", reorder="turn")),
}
PARTS = [torch.ones(2, 1, 3), torch.full((2, 2, 3), 10.0), torch.tensor([1.0, 5.0])[:, None, None]]
GIVEN_PARTS = [[("x", part.expand(2, part.shape[1], 3))] for part in PARTS]


def session(form):
    text, cache = FORMS[form]
    made = loaded(text)
    made.ask("declare_cache", **plain(cache))
    made.ask("build", name="Net", init={"width": 3}, seed=0)
    return made


@pytest.mark.parametrize("form", FORMS)
def test_steps_go_on_from_each_other_and_begin_anew(form):
    """Each call sees those before it; the next sequence, and a plain call, see none of them."""
    made = session(form)
    for _ in range(2):
        outputs = made.ask("cached_steps", calls=GIVEN_PARTS, batch=2, length=4)["outputs"]
        assert [outputs[str(i)][0, 0, 0].item() for i in range(3)] == [1, 21, 22]
    alone = made.ask("call", inputs=GIVEN_PARTS[1])["output"]
    assert alone[0, 0, 0].item() == 20


@pytest.mark.parametrize("form", FORMS)
def test_rows_follow_their_parents(form):
    """Before the last call, row b becomes what row parents[b] was."""
    first = [("x", torch.tensor([1.0, 100.0])[:, None, None].expand(2, 1, 3))]
    told = session(form).ask(
        "cached_steps", calls=[first, first], batch=2, length=2, parents=torch.tensor([1, 1])
    )
    assert told["outputs"]["1"][:, 0, 0].tolist() == [101, 200]


def test_what_is_no_pair_is_said_so():
    """Where the contract promises (output, cache), a lone tensor is named."""
    kept = KVCache(None, **plain(Cache()))
    with pytest.raises(TypeError, match=r"returned Tensor, not the pair \(output, cache\)"):
        kept.output(torch.ones(1))
    with pytest.raises(TypeError, match="returned 3 things"):
        kept.output((1, 2, 3))


def test_caches_of_layers_are_reordered_one_by_one():
    """A list of caches has no method of its own; nests of tensors are indexed by rows."""

    class Layer:
        def reorder(self, parents):
            self.got = parents

    layers = [Layer(), Layer()]
    kept = KVCache(None, **plain(Cache(form="given", reorder="reorder")), cache=layers)
    kept.reorder_rows(torch.tensor([1, 0]))
    assert [layer.got.tolist() for layer in layers] == [[1, 0], [1, 0]]
    nest = KVCache(None, **plain(Cache()), cache={"k": (torch.tensor([3, 4]), None)})
    nest.reorder_rows(torch.tensor([1, 1]))
    assert nest.cache["k"][0].tolist() == [4, 4]


def test_several_calls_in_one_go():
    """One answer for each, as if each had been asked for."""
    made = session("returned")
    answers = made.ask("calls", inputs=GIVEN_PARTS)["answers"]
    assert [a["output"][0, 0, 0].item() for a in answers] == [1, 20, 1]
