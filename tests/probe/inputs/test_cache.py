"""Samples of a round: drawn once, called once, the same for every check."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from attnlab.candidate.host import Raised
from attnlab.probe.inputs.cache import ALL, EXPLAINING, FAINT, FEWER, MANY, SOME, SampleCache
from attnlab.probe.inputs.draw import Dice, inputs
from attnlab.records import Contract, Input

X = Input(name="x", axes=("B", "S", "D"))
MASK = Input(name="mask", axes=("B", "S", "S"), dtype="bool", role="mask", optional=True)
IDS = Input(name="ids", axes=("B", "S"), dtype="int")


class Source:
    """A probe that counts what it is asked."""

    def __init__(self, *given, thorough=True, breaks=(), compared=False):
        sizes = {"B": 2, "S": 4, "D": 8}
        self.contract = Contract(sizes=sizes, inputs=given or (X, MASK), output=X.axes)
        self.thorough, self.breaks, self.compared = thorough, breaks, compared
        self.pace = 0.0
        self.dice, self.asked = Dice(0), []

    @property
    def sizes(self):
        return self.contract.sizes

    def draw(self, mask="random", scale=1.0, longer=0, alone=False):
        sizes = {**self.sizes, "S": self.sizes["S"] + longer}
        return inputs(self.contract, sizes | ({"B": 1} if alone else {}), self.dice, mask, scale)

    def expected_seconds(self, length):
        return self.pace * length

    def call(self, given, train=False):
        self.asked.append("call")
        return self._out(given)

    def calls(self, several, train=False):
        self.asked.append(len(several))
        return [self._out(given) for given in several]

    def gradients(self, given, train=False, still=False, size=1.0):
        how = "gradients in train mode" if train else "gradients"
        self.asked.append(f"{how}, {'still inputs, ' if still else ''}size {size:g}")
        return given

    def _out(self, given):
        if given.get("mask", 0) is None and "none" in self.breaks:
            raise Raised({"error": "TypeError"})
        return next(iter(given.values())) * 2


def test_what_nearly_every_check_wants_comes_in_one_go():
    """And is the same whoever asks; other kinds are had when they are asked for."""
    source = Source()
    pool = SampleCache(source)
    first, out = pool.sample("random", 1.0)
    again, same = pool.sample("random", 1.0)
    assert source.asked == [len(ALL)]
    assert out is same
    assert all(a is b for a, b in zip(first.values(), again.values(), strict=True))
    pool.sample("empty-rows", 1.0)
    assert source.asked == [len(ALL), "call"]


def test_sizes_that_only_confirm_take_fewer_calls():
    """What else explains a wrong value is had in one more go."""
    source = Source(thorough=False)
    pool = SampleCache(source)
    pool.sample("none", 1.0)
    pool.fetch(pool.usual(EXPLAINING))
    pool.sample("causal", 1.0)
    assert source.asked == [len(SOME), len(EXPLAINING) - len(SOME)]


def test_where_one_kind_fails_the_others_are_still_there():
    """Each is then asked for by itself, and says for itself what it says."""
    source = Source(breaks=("none",))
    pool = SampleCache(source)
    assert pool.sample("random", 1.0)[1].shape == (2, 4, 8)
    with pytest.raises(Raised):
        pool.sample("none", 1.0)
    assert source.asked == [len(ALL), "call", "call"]


def test_without_a_mask_all_kinds_are_one():
    """And to a module that takes ids, all scales."""
    pool = SampleCache(Source(X))
    assert pool.sample("causal", 1.0)[1] is pool.sample("none", 1.0)[1]
    pool = SampleCache(Source(IDS))
    assert pool.sample("random", 30.0)[1] is pool.sample("random", 1.0)[1]


def test_the_reference_is_asked_once_for_all_samples():
    """In one batch for those of one form; every time for inputs that are no samples, whose memory
    another may have next."""
    pool = SampleCache(Source())
    given, _ = pool.sample("random", 1.0)
    worked = []

    def call(inputs):
        worked.append(len(inputs["x"]))
        return inputs["x"] * 3

    for _ in range(2):
        assert torch.equal(pool.expected(given, call), given["x"] * 3)
    masked, open_ = 2 * (len(ALL) - 1), 2  # two sequences each; one kind has no mask
    assert sorted(worked) == [open_, masked]
    for kind in ("none", "causal"):
        other, _ = pool.sample(kind, 1.0)
        assert torch.equal(pool.expected(other, call), other["x"] * 3)
    assert len(worked) == 2
    for _ in range(2):
        pool.expected({"x": torch.zeros(1)}, call)
    assert worked[2:] == [1, 1]


def test_gradients_are_taken_where_one_query_has_one_key():
    """A sum of weights that is 1 before it is divided by hides what a division by it does."""
    source = Source()
    pool = SampleCache(source)
    given, _ = pool.gradient_sample("random")
    assert (given["mask"][:, 0].sum(-1) == 3).all()
    assert pool.gradient_sample("random")[0] is given
    assert source.asked == ["gradients, size 1"]


def test_what_is_slow_gets_a_shorter_sequence():
    """A backward pass takes longer still."""
    source = Source(compared=True)
    source.pace = 1.0
    assert SampleCache(source).gradient_sample("none")[0]["x"].shape[:2] == (1, FEWER)


def test_gradients_without_a_mask_are_those_of_a_first_layer_that_trains():
    """Where values can be compared: in train mode if no dropout is asked for, far from the loss,
    and of weights alone where the inputs' are seen with a mask."""
    source = Source(compared=True)
    pool = SampleCache(source)
    pool.gradient_sample("random")
    pool.gradient_sample("none")
    pool.gradient_sample("causal")
    far = f"size {FAINT:g}"
    assert source.asked == [
        "gradients, size 1",
        f"gradients in train mode, still inputs, {far}",
        "gradients in train mode, size 1",
    ]
    shapes = [pool.gradient_sample(mask)[0]["x"].shape[:2] for mask in ("random", "none", "causal")]
    assert shapes == [(2, 4), (1, MANY), (2, 4)]
    alone = Source(X, compared=True)
    SampleCache(alone).gradient_sample("random")
    assert alone.asked == [f"gradients in train mode, {far}"]
    both = SampleCache(alone)
    assert both.gradient_sample("random") is not both.gradient_sample("none")
    assert alone.asked[2:] == ["gradients, still inputs, size 1"]
    alone.contract = replace(alone.contract, promises=("dropout",))
    SampleCache(alone).gradient_sample("random")
    assert alone.asked[-1] == f"gradients, {far}"
