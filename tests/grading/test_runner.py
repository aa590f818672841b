"""The check stage: rounds, outcomes, folding and order."""

import random

import pytest
from fakes import Host, calls, check, fails, grade, ids, raises
from modules import PLAIN, job, local, module

from attnlab.checks.base import Failure, Tier, load_checks
from attnlab.grading.pipeline import run_job
from attnlab.grading.runner import _merge
from attnlab.probe.answers import CannotTell, Skip
from attnlab.probe.inputs.sizes import rounds
from attnlab.probe.reference import BadReference
from attnlab.records import CheckResult, Contract, Input
from attnlab.verdict import UNSEEN

GOOD = module("return x")


# ---------------------------------------------------------------- rounds


def test_every_check_runs_in_every_round(monkeypatch):
    """The example, the drawn sizes, the extra ones and the edge: a pass holds at all of them."""
    seen = []
    contract = Contract(
        sizes={"B": 2, "S": 4, "D": 8}, init={"width": "D"}, extra_sizes=({"S": 99},)
    )
    (result,) = grade(monkeypatch, check("a", lambda p: seen.append(p.sizes)), contract=contract)
    assert result.outcome == "passed"
    assert seen == rounds(contract, random.Random(0))
    assert {s["S"] for s in seen} >= {4, 99, 1}


def test_some_checks_are_made_at_a_few_sizes(monkeypatch):
    """At the example's and at the first that are drawn."""
    seen = []
    grade(monkeypatch, check("a", lambda p: seen.append(p.sizes), few=True))
    assert seen == rounds(PLAIN, random.Random(0))[:2]


def test_a_brief_look_ends_with_the_first_failure():
    """What comes after it is skipped, and says how to see more."""
    contract = Contract(
        sizes={"B": 2, "S": 4, "D": 8},
        init={"width": "D"},
        inputs=(Input(name="x", axes=("B", "S", "D")),),
        output=("B", "S", "D"),
    )
    asked = job(module("return x * torch.nan"), contract, stages=("check",), until="reason")
    first, *others = run_job(asked, local).checks
    assert (first.id, first.outcome) == ("finite", "failed")
    unseen = [c for c in others if c.reason == "unseen"]
    assert unseen
    assert "finite failed before it; --all looks at everything" in unseen[0].message
    assert {c.outcome for c in others} == {"passed", "skipped"}


def test_a_failed_check_is_not_asked_again(monkeypatch):
    """The first failure stands, with the sizes at which it was seen."""
    seen = []

    def run(probe):
        seen.append(1)
        return Failure(message="no") if len(seen) == 2 else None

    (result,) = grade(monkeypatch, check("a", run))
    assert (result.outcome, len(seen)) == ("failed", 2)
    assert result.sizes["B"] in (3, 4)


def test_the_module_is_built_once_a_round(monkeypatch):
    """All checks of a round share one module and one set of weights."""
    host = Host()
    grade(monkeypatch, check("a"), check("b"), host=host)
    assert host.asked == ["build"] * len(rounds(PLAIN, random.Random(0)))


def test_a_skip_at_some_sizes_does_not_undo_a_pass(monkeypatch):
    """What held where it applies has passed; what applied nowhere is skipped with its reason."""

    def at_one(probe):
        if probe.sizes["S"] == 1:
            raise Skip("one position")

    passed, skipped = grade(
        monkeypatch, check("a", at_one), check("b", raises(Skip("never applies")))
    )
    assert (passed.outcome, skipped.outcome, skipped.message) == (
        *("passed", "skipped"),
        "never applies",
    )


def test_a_skip_first_and_a_failure_later_is_a_failure(monkeypatch):
    """A property that the example cannot show is still tried at other sizes."""

    def run(probe):
        if probe.sizes["S"] == 4:
            raise Skip("not here")
        return Failure(message="there")

    (result,) = grade(monkeypatch, check("a", run))
    assert (result.outcome, result.message) == ("failed", "there")


@pytest.mark.parametrize(
    ("needs", "reason"),
    [
        (("reference",), "there is no reference for this module"),
        (("mask",), "the module takes no attention mask"),
        (("position",), "the module does not promise a positional encoding formula"),
        (("buffers",), "the contract names no buffers"),
    ],
)
def test_what_does_not_apply_is_skipped_with_the_reason(monkeypatch, needs, reason):
    """The check is not run at all."""
    (result,) = grade(monkeypatch, check("a", raises(AssertionError), needs=needs))
    assert (result.outcome, result.message, result.advice) == ("skipped", reason, "")


# ---------------------------------------------------------------- outcomes


def test_a_failure_has_its_message_its_advice_and_its_sizes(monkeypatch):
    """A failure's own advice wins over that of its check."""
    first, second = grade(
        monkeypatch,
        check("a", fails("wrong")),
        check("b", lambda p: Failure(message="too", advice="try this")),
    )
    assert (first.outcome, first.message, first.advice) == ("failed", "wrong", "do a")
    assert first.sizes == {"B": 2, "S": 4, "D": 8, "H": 2, "hd": 4}
    assert (second.advice, first.trusted) == ("try this", True)


def test_a_check_that_cannot_tell_is_an_error_with_a_reason(monkeypatch):
    """Not passed and not failed; it is not asked again."""
    count = []

    def run(probe):
        count.append(1)
        raise CannotTell("no weights", "no-weights")

    (result,) = grade(monkeypatch, check("a", run))
    assert (result.outcome, result.reason, result.advice) == ("error", "no-weights", "")
    assert len(count) == 1


@pytest.mark.parametrize(
    "error", [AssertionError("x"), IndexError("x"), TypeError("x"), BadReference("x")]
)
def test_a_fault_of_the_check_itself_is_never_a_pass(monkeypatch, error):
    """Whatever a check raises of its own: an error, marked internal."""
    (result,) = grade(monkeypatch, check("a", raises(error)))
    assert (result.outcome, result.reason) == ("error", "internal")
    assert type(error).__name__ in result.message


def test_a_fault_in_a_later_round_is_not_hidden_by_an_earlier_pass(monkeypatch):
    """An error wins over a pass at other sizes."""

    def run(probe):
        if probe.sizes["S"] == 1:
            raise IndexError

    (result,) = grade(monkeypatch, check("a", run))
    assert result.outcome == "error"


def test_an_output_that_is_no_tensor_fails(monkeypatch):
    """The kind of what came is in the message."""
    host = Host()
    host.ask = lambda verb, **args: {"kind": "tuple"} if verb == "call" else {}
    (result,) = grade(monkeypatch, check("a", calls), host=host)
    assert (result.outcome, result.reason) == ("failed", "odd")
    assert result.message == "forward returned tuple, not one plain tensor"


def test_untrusted_checks_are_marked(monkeypatch):
    """A check that rests on the candidate's word says so in its result."""
    (result,) = grade(monkeypatch, check("a", trusted=False))
    assert (result.outcome, result.trusted) == ("passed", False)


# ---------------------------------------------------------------- folding and order


def test_a_failure_that_follows_from_another_is_folded_under_it(monkeypatch):
    """b names a in `after`: a explains b. c stands for itself."""
    results = grade(
        monkeypatch,
        check("a", fails()),
        check("b", fails(), Tier.SAMPLES),
        check("c", fails()),
    )
    assert [(r.id, r.folded_under) for r in results] == [("a", ""), ("c", ""), ("b", "a")]


def test_a_check_with_a_part_that_was_not_looked_at_is_not_skipped():
    """One part does not apply, another came after the failure: grade and run count it alike."""
    part = part_result("skipped", "there are no tied parameters", "")
    late = part_result("skipped", "not looked at", UNSEEN)
    assert _merge([part, late]).reason == UNSEEN
    assert _merge([part_result("passed", "", ""), late]).reason == UNSEEN
    assert _merge([part]).message == "there are no tied parameters"


def part_result(outcome, message, reason):
    return CheckResult(id="a", title="", outcome=outcome, message=message, reason=reason)


def test_folding_leads_to_the_root(monkeypatch):
    """c follows from b, b from a: both are folded under a."""
    results = grade(
        monkeypatch,
        check("a", fails()),
        check("b", fails(), Tier.SAMPLES),
        check("c", fails(), Tier.MASKS),
    )
    assert [r.folded_under for r in results] == ["", "a", "a"]


def test_nothing_is_folded_under_what_passed(monkeypatch):
    """`after` explains only where the more basic property failed."""
    passed = check("a")
    first, second = grade(monkeypatch, passed, check("b", fails(), Tier.SAMPLES))
    assert (first.id, first.folded_under, second.id) == ("b", "", "a")


def test_a_failure_of_the_example_comes_before_one_of_other_sizes(monkeypatch):
    """What the user can see in `run` is shown first, and is never folded under what they cannot."""
    late = check("a", fails(when=lambda sizes: sizes["S"] != 4))
    early = check("b", fails(), Tier.SAMPLES)
    results = grade(monkeypatch, late, early)
    assert [(r.id, r.folded_under) for r in results] == [("b", ""), ("a", "")]


def test_the_order_of_outcomes(monkeypatch):
    """Failed, folded, error, passed, skipped; the order of the checks within each."""
    results = grade(
        monkeypatch,
        check("skipped", raises(Skip("no"))),
        check("passed"),
        check("error", raises(CannotTell("no"))),
        check("failed", fails()),
        check("folded", fails(), Tier.MASKS),
        check("passed-too"),
    )
    assert ids(results) == ["failed", "folded", "error", "passed", "passed-too", "skipped"]


def test_without_the_right_shape_nothing_else_is_looked_at(monkeypatch):
    """Checks index the output, so they are skipped once output-shape failed."""
    asked = []
    results = grade(
        monkeypatch,
        check("output-shape", fails("flat"), Tier.SHAPE),
        check("finite", lambda p: asked.append(1), Tier.FINITE),
    )
    assert [(r.id, r.outcome) for r in results] == [
        ("output-shape", "failed"),
        ("finite", "skipped"),
    ]
    assert results[1].message == "not looked at, because output-shape failed"
    assert not asked


def test_a_shape_that_fails_later_does_not_undo_what_passed(monkeypatch):
    """At the example's sizes finite held, at others there is no output to look at."""
    results = grade(
        monkeypatch,
        check("output-shape", fails(when=lambda sizes: sizes["S"] != 4), Tier.SHAPE),
        check("finite", tier=Tier.FINITE),
    )
    assert [(r.id, r.outcome) for r in results] == [
        ("output-shape", "failed"),
        ("finite", "passed"),
    ]


def test_the_real_checks_pass_a_right_module_and_none_is_forgotten():
    """Every check that exists has a result, each once."""
    x = Input(name="x", axes=("B", "S", "D"))
    contract = Contract(
        sizes={"B": 2, "S": 4, "D": 8}, init={"width": "D"}, inputs=(x,), output=("B", "S", "D")
    )
    right = module("return x * 1.0")
    report = run_job(job(right, contract, stages=("check",)), local)
    assert sorted(ids(report.checks)) == sorted(c.id for c in load_checks())
    assert {r.outcome for r in report.checks} == {"passed", "skipped"}
    assert all(r.message for r in report.checks if r.outcome == "skipped")
