"""Right modules pass whatever their weights are called; wrong ones never pass by a map."""

from dataclasses import replace

import pytest
import torch
from modules import ATTENTION, PLAIN, hosted, module
from other_styles import HEAD, OTHERS, WRONG_OTHERS
from styles import MIXED, RIGHT, WRONG, broken

from attnlab.candidate.host import LocalHost
from attnlab.grading.runner import run_checks
from attnlab.probe.inputs.draw import Dice
from attnlab.probe.probe import GradingContext
from attnlab.probe.reference import FileReference, UnitReference
from attnlab.probe.weights.match import MatchContext, WeightMatcher, find_map
from attnlab.records import Code

CONTRACT = replace(ATTENTION, promises=("averaging",))
BY_VALUE = ("matches-reference", "gradients-match")
PROPERTIES = (
    "finite",
    "batch-independence",
    "causality",
    "masked-keys-ignored",
    "matches-reference",
)
UNIT = "MultiHeadSelfAttention"
TWICE = module("return self.proj(x)", "self.proj = nn.Linear(width, width)")
BREAKABLE = [name for name in RIGHT if "hd**0.5" in RIGHT[name]]


def graded(text, contract=CONTRACT, reference=None, only=BY_VALUE):
    """The results of a few checks, at all sizes."""
    host = hosted(text, contract)
    context = GradingContext(
        contract=contract, name="Net", host=host, renew=lambda: host, dice=Dice(0),
        reference=reference or UnitReference(UNIT), only=frozenset(only),
    )  # fmt: skip
    return {c.id: c for c in run_checks(context)}


def bad(checks):
    return {c.id: (c.outcome, c.message) for c in checks.values() if c.outcome == "failed"}


def context(text, contract=ATTENTION, reference=None, seed=0):
    host = hosted(text, contract)
    return MatchContext(host, "Net", reference or UnitReference(UNIT), contract, Dice(seed))


def twice():
    return FileReference(Code(file="solution.py", text=TWICE, name="Net"), LocalHost())


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_module_passes_under_other_names(name):
    """Renamed, fused, split, transposed, head by head: values and gradients are compared."""
    checks = graded(RIGHT[name])
    assert not bad(checks)
    assert checks["matches-reference"].outcome == checks["gradients-match"].outcome == "passed"


@pytest.mark.parametrize("shift", [0, 5])
@pytest.mark.parametrize("how", WRONG)
def test_a_wrong_module_does_not_pass_under_other_names(how, shift):
    """A property fails, or nothing is said of its values: never a pass."""
    name = BREAKABLE[(list(WRONG).index(how) + shift) % len(BREAKABLE)]
    checks = graded(broken(RIGHT[name], how), only=PROPERTIES)
    by_value = checks["matches-reference"]
    assert bad(checks) or (by_value.outcome, by_value.reason) == ("error", "no-weights")


@pytest.mark.parametrize("name", OTHERS)
def test_other_layers_find_their_weights(name):
    """Grouped, cross and gated, a whole block, a table: right passes, wrong does not."""
    unit, contract, body = OTHERS[name]
    text = HEAD + body
    checks = graded(text, contract, UnitReference(unit))
    assert not bad(checks)
    assert checks["matches-reference"].outcome == "passed"
    old, new = WRONG_OTHERS[name]
    assert text.count(old) == 1
    checks = graded(text.replace(old, new), contract, UnitReference(unit))
    assert checks["matches-reference"].reason == "no-weights"


@pytest.mark.parametrize("name", MIXED)
def test_a_map_undoes_no_mistake(name):
    """Names that say something bind, and same names are never taken apart."""
    assert MIXED[name] not in RIGHT.values()
    assert find_map(context(MIXED[name])).entries is None


@pytest.mark.parametrize("seed", range(4))
def test_what_is_found_does_not_hang_on_luck(seed):
    """The same map and the same refusal for other weights and inputs."""
    fit = find_map(context(RIGHT["matrices times which x stands"], seed=seed))
    assert fit.entries["wk"] == "t(part(qkv_proj.weight, 1, 3))"
    wrong = broken(RIGHT["matrices times which x stands"], "scaled by the width")
    assert find_map(context(wrong, seed=seed)).entries is None


def test_gradients_are_those_of_the_modules_own_parameters():
    """A renamed layer that does not learn is named as its author calls it."""
    text = RIGHT["names of their own"].replace("scores = q @ k.mT", "scores = q.detach() @ k.mT")
    message = graded(text)["gradients-match"].message
    assert message.startswith("no gradient reaches query.weight; the reference's goes up to")


def test_a_mask_that_is_read_wrongly_is_a_wrong_value():
    """The map is proven without a mask, so that a mask can be what is wrong."""
    text = RIGHT["names of their own"].replace("mask[:, None]", "mask[:1, None]")
    assert find_map(context(text)).entries is not None
    assert bad(graded(text))


@pytest.mark.parametrize(
    ("init", "forward", "why"),
    [
        (
            "self.lin = nn.Linear(width, 2)",
            "return x",
            "it has 62 numbers in its parameters",
        ),
        ("self.lin = nn.Linear(width, width)", "return x", "none of the 2 likely ways to load"),
        (
            "self.w = nn.Parameter(torch.zeros(width + 1, width))",
            "return x",
            "by their names and shapes",
        ),
        ("self.lin = nn.Linear(width, width)", "return x[:0]", "none of the 2 likely ways"),
        ("self.lin = nn.Linear(width, width)", "return x, x", "none of the 2 likely ways"),
        ("self.lin = nn.Linear(width, width)", "return self.gone", "it raised AttributeError"),
    ],
)
def test_why_there_is_no_map(init, forward, why):
    """Counted, tried or impossible: the sentence says which."""
    fit = find_map(context(module(forward, init), PLAIN, twice()))
    assert fit.entries is None
    assert why in fit.reason


def test_without_a_map_the_module_cannot_be_compared():
    """The reason names both sides' parameters and what was tried."""
    checks = graded(module("return x", "self.lin = nn.Linear(width, width)"), PLAIN, twice())
    found = checks["matches-reference"]
    assert (found.outcome, found.reason) == ("error", "no-weights")
    assert "no parameter proj.weight" in found.message
    assert "it has lin.weight, lin.bias; none of the 2 likely ways" in found.message


def test_a_declared_map_is_taken_as_it_is():
    """What the challenge says needs no proof: a wrong module with these names is wrong."""
    declared = {"lin.weight": "proj.weight", "lin.bias": "proj.bias"}
    contract = replace(PLAIN, weights=declared)
    init = "self.lin = nn.Linear(width, width)"
    right, wrong = module("return self.lin(x)", init), module("return self.lin(x) * 1.1", init)
    assert not bad(graded(right, contract, twice()))
    assert "matches-reference" in bad(graded(wrong, contract, twice()))
    assert not bad(graded(wrong, PLAIN, twice()))


def test_a_declared_map_that_does_not_fit_is_said():
    """Where nothing else is found either, its author learns why."""
    contract = replace(PLAIN, weights={"lin.weight": "t(gone)"})
    wrong = module("return x", "self.lin = nn.Linear(width, width)")
    message = graded(wrong, contract, twice())["matches-reference"].message
    assert "the reference has no parameter gone" in message
    right = module("return self.lin(x)", "self.lin = nn.Linear(width, width)")
    assert not bad(graded(right, contract, twice()))


def test_a_map_is_searched_once():
    """Other sizes take the map that was found, whatever it costs to find one."""
    made = context(RIGHT["a module for each head"])
    weight_matcher = WeightMatcher()
    sizes = {"B": 2, "S": 4, "D": 8, "H": 2, "hd": 4}
    assert weight_matcher.build(made, sizes).indices is not None
    found = weight_matcher.found
    wider = weight_matcher.build(made, {**sizes, "D": 12, "H": 3})
    assert weight_matcher.found is found
    assert wider.indices["heads.2.key.weight"].shape == (4, 12)


@pytest.mark.parametrize(
    "told",
    [{}, {"tensors": None}, {"tensors": {"w": 3}}, {"tensors": {"w": torch.zeros((2,) * 9)}}],
)
def test_a_lying_process_gets_no_map(told):
    """Whatever is answered of parameters, it becomes a refusal."""
    made = context(TWICE, PLAIN, twice())
    made.host.ask = lambda verb, **args: {"missing": ["w"]} if verb == "build" else told
    assert WeightMatcher().build(made, PLAIN.sizes).refusal
