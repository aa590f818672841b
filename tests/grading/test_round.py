"""Which checks are worth a call at one set of sizes."""

from __future__ import annotations

import pytest
from fakes import check

from attnlab.candidate.host import Died, LocalHost
from attnlab.checks.base import Failure, Tier
from attnlab.grading import runner
from attnlab.grading.runner import run_checks
from attnlab.probe.inputs.draw import Dice
from attnlab.probe.probe import GradingContext
from attnlab.probe.reference import UnitReference
from attnlab.records import Contract, Input

UNIT = "MultiHeadSelfAttention"
CONTRACT = Contract(
    sizes={"B": 2, "S": 4, "D": 8, "H": 2},
    init={"embed_dim": "D", "num_heads": "H"},
    inputs=(Input(name="x", axes=("B", "S", "D")),),
    output=("B", "S", "D"),
)
TEXT = f"from attnlab.references.attention import {UNIT}\n"
VALUES = "matches-reference"


def graded(monkeypatch, *checks, until="end", contract=CONTRACT, host=None, text=TEXT):
    monkeypatch.setattr(runner, "load_checks", lambda: checks)
    host = host or LocalHost()
    host.ask("load", file="m.py", text=text, path="", own=None)
    context = GradingContext(
        contract, UNIT, host, lambda: host, Dice(0), UnitReference(UNIT), until=until
    )  # fmt: skip
    return {result.id: result for result in run_checks(context)}


def noting(seen, name, failure=None):
    def run(probe):
        seen.append((name, probe.sizes["S"], probe.confirming))
        return failure

    return run


def test_right_values_leave_properties_to_sizes_that_tell_more(monkeypatch):
    """At the example's values are compared alone; what is made once comes after the others."""
    seen = []
    few = check("few", noting(seen, "few"), few=True)
    once = check("once", noting(seen, "once"), once=True)
    values = check(VALUES, noting(seen, VALUES), Tier.VALUES)
    found = graded(monkeypatch, few, once, values)
    assert {r.outcome for r in found.values()} == {"passed"}
    names = [name for name, *_ in seen]
    assert names[0] == VALUES
    assert names.index("few") == 2
    assert names.index("once") > names.index("few") + 1
    assert (names.count("few"), names.count("once")) == (1, 1)
    assert next(light for name, _, light in seen if name == "few")


def test_no_check_falls_between_the_rounds(monkeypatch):
    """One that is made once and at a few sizes only is made where the few are."""
    seen = []
    both = check("both", noting(seen, "both"), few=True, once=True)
    found = graded(monkeypatch, both, check(VALUES, noting([], VALUES)))
    assert (found["both"].outcome, len(seen)) == ("passed", 1)


def test_wrong_values_call_for_the_reason(monkeypatch):
    """In brief only what explains them is made, before it is said that they are wrong."""
    seen = []
    reason = check("reason", noting(seen, "reason"), few=True)
    other = check("other", noting(seen, "other"), Tier.ASIDE, few=True)
    values = check(VALUES, noting(seen, VALUES, Failure(message="no")), Tier.VALUES)
    found = graded(monkeypatch, reason, other, values, until="reason")
    assert [name for name, *_ in seen] == [VALUES, "reason"]
    assert (found[VALUES].outcome, found["other"].outcome) == ("failed", "skipped")
    assert not any(light for *_, light in seen)


def test_calls_of_several_checks_are_had_in_one_go(monkeypatch):
    """A check that yields what it wants to call is sent what came, among others or by itself."""
    seen = []

    def run(probe):
        outputs = yield [probe.draw(), probe.draw()]
        seen.append([tuple(out.shape)[2] for out in outputs])
        return Failure(message="first") if len(seen) == 1 else None

    values = check(VALUES, noting([], VALUES))
    some = check("a", run, few=True), check("b", run, few=True)
    found = graded(monkeypatch, *some, values)
    assert (found["a"].message, found["b"].outcome) == ("first", "passed")
    assert seen == [[30, 30], [30, 30]]


class Dying(LocalHost):
    """Answers everything but several calls at once."""

    def ask(self, verb, **args):
        if verb == "calls":
            raise Died("crashed", "was killed")
        return super().ask(verb, **args)


def test_a_process_that_dies_of_calls_in_one_go_is_a_failure(monkeypatch):
    """And no end of the grade without a report."""

    def run(probe):
        yield [probe.draw()]

    some = check("a", run, few=True)
    values = check(VALUES, lambda probe: Failure(message="no"), Tier.VALUES)
    found = graded(monkeypatch, some, values, until="reason", host=Dying())
    assert (found["a"].outcome, found["a"].message) == ("failed", "the candidate was killed")


def test_the_most_basic_reasons_are_looked_at_before_the_others(monkeypatch):
    """A leak is seen in a few calls; what would come after them is not called."""
    called = []

    def step(name, failure=None):
        def run(probe):
            called.append(name)
            yield [probe.draw()]
            return failure

        return check(name, run, few=True)

    basic = [step("a"), step("b"), step("c", Failure(message="leaks"))]
    later = [step("d")]
    values = check(VALUES, lambda probe: Failure(message="no"), Tier.VALUES)
    found = graded(monkeypatch, *basic, *later, values, until="reason")
    assert called == ["a", "b", "c"]
    assert (found["c"].outcome, found["d"].outcome) == ("failed", "skipped")


@pytest.mark.parametrize("until", ["reason", "end"])
def test_an_output_that_is_not_finite_is_told_before_any_relation(monkeypatch, until):
    """NaN and infinity differ from everything: a mask was blamed, and with --all the numbers."""

    def leaks(probe):
        probe.call(probe.draw(scale=300.0))
        return Failure(message="key 2 was masked, and changed the output")

    finite = check("finite", lambda _: None, Tier.FINITE)
    text = f"{TEXT}\nclass {UNIT}({UNIT}):\n    def forward(self, x):\n        return x.exp()\n"
    masks = check("masks", leaks, Tier.MASKS)
    found = graded(monkeypatch, finite, masks, until=until, text=text)
    assert (next(iter(found)), found["finite"].outcome) == ("finite", "failed")
    assert "changed" not in found["masks"].message
    assert "output values are NaN or infinite, the first at" in found["finite"].message


def test_a_verdict_alone_needs_no_reason(monkeypatch):
    """That values are wrong is enough; nothing looks for what explains them."""
    seen = []
    reason = check("reason", noting(seen, "reason", Failure(message="leaks")), few=True)
    values = check(VALUES, noting(seen, VALUES, Failure(message="no")), Tier.VALUES)
    found = graded(monkeypatch, reason, values, until="verdict")
    assert [name for name, *_ in seen] == [VALUES]
    assert (found[VALUES].outcome, found["reason"].outcome) == ("failed", "skipped")


class Counting(LocalHost):
    """Counts what it is asked for."""

    def __init__(self):
        super().__init__()
        self.asked = []

    def ask(self, verb, **args):
        self.asked.append(verb)
        return super().ask(verb, **args)


FALLS_ONCE = f"""{TEXT}
class Falls({UNIT}):
    ready = False

    def forward(self, x):
        if not self.ready:
            self.ready = True
            raise RuntimeError("not yet")
        return super().forward(x)
"""


@pytest.mark.parametrize("until", ["verdict", "reason", "end"])
def test_a_crash_of_the_first_call_is_the_first_failure(monkeypatch, until):
    """Built and called once: a second call, which may pass, does not take it back."""
    shape = check("output-shape", lambda probe: probe.sample() and None, Tier.SHAPE)
    values = check(VALUES, lambda probe: probe.sample() and None, Tier.VALUES)
    monkeypatch.setattr(runner, "load_checks", lambda: (shape, values))
    host = Counting()
    host.ask("load", file="m.py", text=FALLS_ONCE, path="", own=None)
    reference = UnitReference(UNIT)
    context = GradingContext(CONTRACT, "Falls", host, lambda: host, Dice(0), reference, until=until)
    found = {result.id: result for result in run_checks(context)}
    assert (found["output-shape"].outcome, found["output-shape"].reason) == ("failed", "crashed")
    assert "not yet" in found["output-shape"].message
    if until != "end":
        assert host.asked.count("build") == 1
        assert found[VALUES].reason == "unseen"
