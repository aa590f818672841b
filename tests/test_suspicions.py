"""A report becomes a ranked list: order, symptoms, what is left out, what was not looked at."""

from dataclasses import replace

import pytest

from attnlab.catalogue.finding_rules import RULES
from attnlab.checks.base import load_checks
from attnlab.ranked_suspicions import SYMPTOMS
from attnlab.records import CheckResult, Crash, Finding, Op, Report, Trace, TrainingReport
from attnlab.records.ablation import Ablation, AblationReport
from attnlab.suspicions import Wishes, make_triage


def finding(rule, line=1, severity="warning"):
    return Finding(rule=rule, file="net.py", line=line, op="", severity=severity, message=rule)


def report(*found, **more):
    return Report(outcome="ok", trace=Trace(ops=(op(),), findings=found), **more)


def op():
    return Op(
        index=0, op="linear", line=1, file="net.py", source="y = f(x)", shape=(2,), axes=("B",),
        dtype="float32", stride=(1,), view=False,
    )  # fmt: skip


def triaged(report):
    return make_triage("net.py", report, Wishes())


def ranked(*found, **wishes):
    return [s.rule for s in make_triage("net.py", report(*found), Wishes(**wishes)).suspicions]


def test_the_likeliest_stands_first_and_notes_last():
    """By the confidence of the rule and by severity."""
    found = [finding("scale", 3, "note"), finding("unused-parameter", 4), finding("mask-value", 2)]
    assert ranked(*found) == ["mask-value", "unused-parameter", "scale"]


def test_a_rule_is_told_once_for_a_line():
    """What a loop over layers repeats is one suspicion."""
    assert ranked(finding("mask-value"), finding("mask-value")) == ["mask-value"]


def test_a_symptom_raises_what_explains_it():
    """Validation that is too good is a leak before it is a missing residual."""
    found = [finding("residual-missing", 2), finding("unused-argument", 3, "warning")]
    assert ranked(*found, symptom="val-too-good")[0] == "unused-argument"
    assert ranked(*found, symptom="loss-does-not-fall")[0] == "residual-missing"


def test_rules_are_left_out_by_name_by_layer_and_by_comment():
    """Each on its own."""
    found = [finding("mask-value", 2), finding("reshape-cut", 3)]
    assert ranked(*found, ignored=("mask-value",)) == ["reshape-cut"]
    assert ranked(*found, only="trace") == ["reshape-cut"]
    comments = {("net.py", 2): frozenset({"mask-value"}), ("net.py", 3): frozenset({"*"})}
    assert make_triage("t", report(*found), Wishes(), comments).outcome == "nothing-found"


def test_the_outcome_says_whether_more_than_notes_were_found():
    """Notes alone are nothing to act on; a crash is found as well."""
    assert make_triage("t", Report(outcome="ok"), Wishes()).outcome == "error"  # nothing was seen
    assert (
        make_triage("t", report(finding("scale", 1, "note")), Wishes()).outcome == "nothing-found"
    )
    assert make_triage("t", report(finding("mask-value")), Wishes()).outcome == "found"
    crash = Crash(
        op="add",
        file="net.py",
        line=4,
        operands=(),
        message="m",
        explanation="e",
        error="RuntimeError",
    )
    crashed = Report(outcome="ok", trace=Trace(crash=crash))
    found = make_triage("t", crashed, Wishes())
    assert (found.outcome, found.suspicions[0].rule, found.suspicions[0].line) == (
        "found",
        "crash",
        4,
    )
    assert (
        make_triage("t", Report(outcome="timeout", message="late"), Wishes()).outcome == "timeout"
    )


def test_a_broken_property_is_a_suspicion_with_its_sizes():
    """And what could not be told is listed with its reason."""
    failed = CheckResult(
        id="causality", title="Later inputs change nothing", outcome="failed", message="they do",
        file="net.py", line=7, advice="mask them", sizes={"S": 5},
    )  # fmt: skip
    unsure = CheckResult(id="finite", title="", outcome="error", message="it timed out")
    found = make_triage("t", report(checks=(failed, unsure)), Wishes())
    (suspicion,) = found.suspicions
    assert (suspicion.layer, suspicion.evidence, suspicion.experiment) == (
        "property",
        "at S=5",
        "mask them",
    )
    assert suspicion.message == "broken: later inputs change nothing: they do"
    assert "finite: it timed out" in found.not_looked_at
    assert any("1 properties" in text for text in found.looked_at)


def test_training_is_told_with_what_it_did_not_see():
    """Its findings rank with the others; its own lists are taken over."""
    seen = TrainingReport(
        steps=20,
        findings=(finding("mask-value"),),
        looked_at=("20 steps",),
        not_looked_at=("backward",),
    )
    found = make_triage("t", Report(outcome="ok", training=seen), Wishes())
    assert [s.rule for s in found.suspicions] == ["mask-value"]
    assert "20 steps" in found.looked_at
    assert "backward" in found.not_looked_at


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_says_what_it_means(rule):
    """A title without a full stop, a text, a confidence; an experiment outside the trace."""
    told = RULES[rule]
    assert told.title
    assert not told.title.endswith(".")
    assert told.text.strip().endswith((".", "`"))
    assert 0 < told.confidence <= 1
    assert told.experiment or told.layer == "trace"


@pytest.mark.parametrize("symptom", SYMPTOMS)
def test_every_symptom_names_what_exists(symptom):
    """Rules, checks and layers: no word that explains nothing."""
    known = {
        "crash",
        *RULES,
        *(c.id for c in load_checks()),
        "training",
        "trace",
        "unused",
        "property",
    }
    assert set(SYMPTOMS[symptom]) <= known


def test_a_crash_of_guessed_inputs_is_no_suspicion():
    """No line is blamed for inputs that the code does not state: what to change is said."""
    crash = Crash(
        op="linear", file="net.py", line=3, source="f(x)", error="E", message="m", explanation="",
        operands=(),
    )  # fmt: skip
    crashed = Report(outcome="ok", trace=Trace(ops=(op(),), crash=crash))
    assert make_triage("net.py", crashed, Wishes()).suspicions[0].confidence == 1.0
    doubted = make_triage("net.py", crashed, Wishes(guessed=("x: B S D",), retry="attnlab triage"))
    assert (doubted.outcome, doubted.suspicions) == ("crashed", ())
    assert "guessed inputs (x: B S D)" in doubted.message
    assert doubted.advice.endswith("attnlab triage")


def test_a_gradient_that_is_missing_is_evidence_of_its_cause():
    """One suspicion of a layer whose result is not read, not two."""
    unread = replace(finding("result-unread", 4), message="h = self.norm(x) is not read")
    idle = replace(finding("no-gradient", 9), message="norm.weight: in the optimizer, and no more")
    other = replace(idle, message="proj.weight: in the optimizer, and no more")
    assert ranked(unread, idle) == ["result-unread"]
    assert ranked(unread, other) == ["result-unread", "no-gradient"]


def test_a_line_stands_before_a_property_that_names_none():
    """Of a cause and its effect the line is what helps."""
    broken = CheckResult(id="mask-effect", title="t", outcome="failed", message="m")
    shown = report(finding("reshape-cut", 3), checks=(broken,))
    assert [s.rule for s in triaged(shown).suspicions] == ["reshape-cut", "mask-effect"]


def test_what_ended_a_script_is_a_suspicion_at_its_line():
    """Also where no step was traced."""
    ended = TrainingReport(steps=0, crash="train.py:7: KeyError: 'x'")
    found = triaged(Report(outcome="ok", training=ended)).suspicions[0]
    assert (found.rule, found.file, found.line) == ("crash", "train.py", 7)


def test_what_the_machine_lacks_is_no_fault_of_a_line():
    """A network or a GPU that is not there: what ended the script and what to do, no suspicion."""
    ended = TrainingReport(steps=0, crash="train.py:7: AssertionError: no CUDA here")
    found = triaged(Report(outcome="ok", training=ended))
    assert (found.outcome, found.suspicions) == ("crashed", ())
    assert "runs on the CPU" in found.advice


def test_a_part_that_drops_in_eval_mode_is_none_without_effect():
    """Both are findings of an ablation; only what changed nothing is said to change nothing."""
    idle = Ablation(kind="mask", what="mask", line=3, message="nothing", is_finding=True)
    drops = Ablation(kind="dropout", what="drop", line=5, change=0.2, message="", is_finding=True)
    report = Report(outcome="ok", ablation=AblationReport(parts=(drops, idle)))
    found = make_triage("net.py", report, Wishes()).suspicions
    assert [(s.rule, s.line, s.severity) for s in found] == [("part-without-effect", 3, "note")]
