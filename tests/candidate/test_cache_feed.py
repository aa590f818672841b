"""What a call is fed with: the cache of the call before, as an argument or in declared inputs."""

import pytest
import torch
from modules import made, module, randn

from attnlab.candidate.cache_feed import CacheFeed
from attnlab.records import from_json
from attnlab.tracer.raw_trace import RawTrace

PAIR = [{"name": "cache", "kind": "tuple", "keys": ["0", "1"]}]
AXES = {"x": ["B", "S"], "cache.0": ["B", "T"], "cache.1": ["B", "T"]}
GROWN = "return x, tuple(torch.cat([c, x], 1) for c in cache)"
JOINED = "return x, x if cache is None else torch.cat([cache, x], 1)"


def session_of(text, containers=(), head="self, x, cache=None"):
    session = made(module(f"self.got.append(cache)\n{text}", init="self.got = []", head=head))
    session.ask("build", name=None, init={"width": 4}, seed=0, containers=containers)
    return session


def traced(session, given, calls=3, **more):
    axes = {n: AXES.get(n, ["B", "S"]) for n, _ in given}
    return session.ask(
        "trace_calls", inputs=given, seed=0, axes=axes, sizes={}, calls=calls, **more
    )


def test_what_is_returned_beside_the_output_is_fed():
    """Each call gets what the one before returned, the first one nothing."""
    session = session_of(JOINED)
    answer = traced(session, [("x", torch.ones(1, 4))])
    assert [None if c is None else c.shape[1] for c in session.target.got] == [None, 4, 8]
    assert answer["lengths"] == [None, [4, 8], [8, 12]]
    assert answer["unfed"] is None


def test_a_declared_cache_is_replaced_by_what_is_returned():
    """Its parts stay inputs, whose axes have names, and the size of the one that grows is known."""
    session = session_of(GROWN, PAIR)
    given = [("x", randn(1, 2)), ("cache.0", randn(1, 3)), ("cache.1", randn(1, 3))]
    answer = traced(session, given, past="T")
    raws = [from_json(RawTrace, text) for text in answer["traces"]]
    assert [raw.sizes["T"] for raw in raws] == [3, 5, 7]
    assert {raw.input_names for raw in raws} == {("x", "cache.0", "cache.1")}
    assert {raw.ops[-1].axes for raw in raws} == {("1", "T+S")}
    assert answer["lengths"] == [None, [5, 7], [7, 9]]


def test_a_cache_of_another_form_is_an_argument():
    """What is returned need not look like what was declared for the first call."""
    session = session_of("return x, (x.unsqueeze(0),) * 2", PAIR)
    given = [("x", randn(1, 2)), ("cache.0", randn(1, 3)), ("cache.1", randn(1, 3))]
    chain = CacheFeed(session, "", AXES, "T")
    chain.invoke(chain.next_inputs(given))
    assert [name for name, _ in chain.next_inputs(given)] == ["x"]
    assert session.arguments["cache"][0].shape == (1, 1, 2)
    chain.start(session.target)
    assert chain.next_inputs(given) == given
    assert session.arguments == {}


def test_the_first_call_keeps_its_own_argument():
    """A cache without a default is given to the first call as the user says."""
    session = made(module("return x, (cache or 0) + 1", head="self, x, cache"))
    session.arguments = {"cache": None}
    assert "raised" not in traced(session, [("x", torch.ones(1, 4))])
    assert session.arguments == {"cache": 2}


@pytest.mark.parametrize(
    ("text", "head", "feed", "unfed"),
    [
        ("return x", "self, x, cache=None", "", "cache"),
        ("return x", "self, x, store=None, cache=None", "store", "store"),
        ("return x, x", "self, x, store=None", "", ""),
        ("return x, x", "self, x, store=None", "store", None),
        ("return x", "self, x, store=None", "", None),
    ],
)
def test_what_cannot_be_fed_is_named(text, head, feed, unfed):
    """Either an argument that nothing is returned for, or what no argument is known to take."""
    answer = traced(made(module(text, head=head)), [("x", randn(1, 2))], feed=feed)
    assert answer["unfed"] == unfed


def test_calls_end_with_the_one_that_raises():
    """What comes after it is not run, and nothing is compared."""
    session = session_of("return x if cache is None else torch.cat([cache, x]), x")
    answer = traced(session, [("x", randn(1, 4))], calls=2, symbol="S")
    raws = [from_json(RawTrace, text) for text in answer["traces"]]
    assert [raw.crash is not None for raw in raws] == [False, True]
    assert not {"gap", "differs"} & answer.keys()


@pytest.mark.parametrize("calls", [2, 3, 5])
@pytest.mark.parametrize(
    "text", ["return x * 2", "return (x @ x.T).softmax(-1) @ x", "return x.chunk(2, 1)"]
)
def test_calls_without_state_are_all_alike(text, calls):
    """A law: the traces of N calls of a module that keeps nothing are N times the same."""
    answer = traced(made(module(text)), [("x", randn(3, 4))], calls=calls)
    assert len(answer["traces"]) == calls
    assert len(set(answer["traces"])) == 1
