"""Reshapes: aligned ones keep every name, others are told."""

import itertools
import math

import torch
from followed import told
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from attnlab.tracer.raw_trace import KnownAxes, build_raw_trace
from attnlab.tracer.recorder import Recorder

PRIMES = [2, 3, 5, 7, 11]
NAMES = ["B", "S", "T", "h", "w"]


def reshaped(sizes, *shapes):
    """The trace of a tensor with the axes `NAMES`, reshaped once and again."""
    recorder = Recorder()
    x = torch.zeros(sizes)
    recorder.name_inputs([x])
    with recorder:
        for shape in shapes:
            x = x.reshape(shape)
    names = NAMES[: len(sizes)]
    return build_raw_trace(recorder, known=KnownAxes([names], dict(zip(names, sizes, strict=True))))


@st.composite
def groups(draw):
    """Distinct prime sizes, and the same merged into neighbouring groups."""
    sizes = draw(st.permutations(PRIMES))[: draw(st.integers(2, 4))]
    cuts = draw(st.sets(st.integers(1, len(sizes) - 1)))
    edges = [0, *sorted(cuts), len(sizes)]
    merged = [math.prod(sizes[a:b]) for a, b in itertools.pairwise(edges)]
    return sizes, merged


@settings(max_examples=40, deadline=None)
@given(groups())
def test_merging_and_parting_keeps_names(case):
    """Whole axes that are merged come back as what they were."""
    sizes, merged = case
    raw = reshaped(sizes, merged, sizes)
    assert told(raw) == []
    assert list(raw.ops[-1].axes) == NAMES[: len(sizes)]


@settings(max_examples=40, deadline=None)
@given(st.permutations(PRIMES[:4]), st.permutations(PRIMES[:4]))
def test_sizes_in_another_order_are_told(sizes, order):
    """With prime sizes every reshape to another order cuts an axis."""
    assume(list(sizes) != list(order))
    assert [rule for rule, _ in told(reshaped(sizes, order))] == ["reshape-cut"]
