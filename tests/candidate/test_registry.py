"""The two ends of a verb, what the judge asks and what the child does, are found by one name."""

import ast
from collections.abc import Iterator
from pathlib import Path

import attnlab
from attnlab.candidate.registry import load_verbs
from attnlab.probe.probe import Probe

ROOMS = ("probe", "grading", "worker", "mutation_testing")
ALSO_ASKED = "read_trace"  # it asks, and reads the trace in the answer
SHARED = {"call", "calls", "gradients", "parameters", "set_parameters"}  # by several methods


def asked(tree: ast.AST) -> Iterator[str]:
    """The verbs in calls of `ask` and `_ask`."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = getattr(node.func, "attr", getattr(node.func, "id", ""))
        first = (
            node.args[:1]
            if called in ("ask", "_ask")
            else node.args[1:2]
            if called == ALSO_ASKED
            else []
        )
        yield from (a.value for a in first if isinstance(a, ast.Constant))


def trees() -> Iterator[ast.AST]:
    root = Path(attnlab.__file__).parent
    for room in ROOMS:
        yield from (ast.parse(path.read_text("utf-8")) for path in (root / room).rglob("*.py"))


def test_every_verb_that_is_asked_is_registered_and_no_other():
    assert {verb for tree in trees() for verb in asked(tree)} == set(load_verbs())


def test_a_method_of_the_probe_that_asks_one_verb_has_its_name():
    text = Path(Probe.__init__.__code__.co_filename).read_text("utf-8")
    found = next(n for n in ast.parse(text).body if getattr(n, "name", "") == "Probe")
    verbs = {m.name: set(asked(m)) for m in found.body if isinstance(m, ast.FunctionDef)}
    own = {n: v - SHARED for n, v in verbs.items() if not n.startswith("_") and len(v) == 1}
    own = {n: v for n, v in own.items() if v}
    by_the_way = {
        "back": {"take_back"},
        "operations": {"trace"},
        "held_by_cache": {"cached_steps"},
    }
    assert {n: v for n, v in own.items() if v != {n}} == by_the_way
