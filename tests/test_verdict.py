"""From a report to a grade: which outcome, which score, what is said, what comes next."""

import typing
from dataclasses import replace

import pytest

from attnlab.records import (
    Bug,
    Challenge,
    CheckResult,
    Contract,
    Crash,
    GradeOutcome,
    Input,
    JobOutcome,
    Report,
    Trace,
)
from attnlab.records.program import ProgramReport
from attnlab.verdict import EXIT_CODES, make_verdict, next_of_round

CHALLENGE = Challenge(
    slug="attention/too-sharp", title="t", kind="debug", level=1, symptom="s", task="t",
    class_name="Net", contract=Contract(), reference="Net", expected=("finite",), source="s",
    hints=(), folder="", file="", solution="", alternatives=(), mutants=(), notes="",
)  # fmt: skip


def check(outcome="passed", name="finite", **more):
    return CheckResult(id=name, title=f"{name} holds", outcome=outcome, **more)


def grade(*checks, outcome="ok", **more):
    return make_verdict(CHALLENGE, "net.py", Report(outcome=outcome, checks=checks, **more))


def test_every_outcome_has_its_exit_code():
    """Scripts rely on these numbers."""
    assert set(EXIT_CODES) == set(typing.get_args(GradeOutcome))
    assert EXIT_CODES == {
        "passed": 0, "failed": 1, "crashed": 1, "timeout": 1, "memory": 1, "unreadable": 2,
        "cannot-compare": 3, "error": 70,
    }  # fmt: skip


@pytest.mark.parametrize("outcome", typing.get_args(JobOutcome))
def test_every_end_of_a_job_has_a_grade(outcome):
    """Whatever the lab says, one of the eight outcomes comes out, with a next step."""
    verdict = grade(outcome=outcome)
    assert verdict.outcome in EXIT_CODES
    assert verdict.message.startswith(f"{verdict.outcome}: ")
    assert verdict.next


@pytest.mark.parametrize(
    ("job", "outcome"),
    [
        ("timeout", "timeout"),
        ("memory", "memory"),
        ("crashed", "crashed"),
        ("unreadable", "unreadable"),
        ("error", "error"),
        ("refused", "error"),
    ],
)
def test_the_end_of_the_job_outweighs_its_checks(job, outcome):
    """A job that hung is a timeout even when some checks had passed before."""
    verdict = grade(check(), check("failed", "causality"), outcome=job)
    assert verdict.outcome == outcome
    assert verdict.score < 1


@pytest.mark.parametrize(
    ("checks", "outcome"),
    [
        ([check(), check("skipped")], "passed"),
        ([check("failed"), check()], "failed"),
        ([check("failed", reason="crashed"), check("failed")], "crashed"),
        ([check("failed", reason="timeout")], "timeout"),
        ([check("failed", reason="memory")], "memory"),
        ([check("failed"), check("failed", reason="crashed")], "failed"),
        ([check("failed"), check("error", reason="other")], "failed"),
        ([check("error", reason="no-weights"), check()], "cannot-compare"),
        ([check("error", reason="no-kernel"), check()], "cannot-compare"),
        ([check("error", reason="no-kernel"), check("failed")], "failed"),
        ([check("error", reason="other"), check()], "error"),
        ([check("error", reason="no-weights"), check("error", reason="other")], "error"),
        ([check("error", reason="timeout"), check()], "timeout"),
        ([check("skipped")], "cannot-compare"),
        ([], "cannot-compare"),
        ([check("passed", trusted=False), check("skipped")], "cannot-compare"),
        ([check("failed", trusted=False), check()], "failed"),
    ],
)
def test_the_first_failure_decides(checks, outcome):
    """Failed beats error beats passed; nothing known is no pass, nor is the child's own word."""
    assert grade(*checks).outcome == outcome


@pytest.mark.parametrize(
    ("checks", "outcome", "score"),
    [
        ([check(), check(), check("skipped")], "ok", 1.0),
        ([check("failed"), check(), check("skipped")], "ok", 0.5),
        ([check("failed"), check("error"), check(), check()], "ok", 0.5),
        ([check("failed")], "ok", 0.0),
        ([], "ok", 0.0),
        ([check("skipped")], "timeout", 0.0),
        ([check(), check(), check()], "crashed", 0.75),
        ([check("passed", trusted=False)], "ok", 0.5),
    ],
)
def test_the_score_is_one_for_a_pass_only(checks, outcome, score):
    """The share of the applicable checks that passed, and below 1 unless the file passed."""
    verdict = grade(*checks, outcome=outcome)
    assert verdict.score == score
    assert (verdict.score == 1.0) == (verdict.outcome == "passed")


BUGS = (
    Bug(id="mask", checks=("reach",), weight=3),
    Bug(id="scale", checks=("causality", "finite")),
)


@pytest.mark.parametrize(
    ("results", "score", "count"),
    [
        ({"reach": "failed", "causality": "failed", "finite": "passed"}, 0.0, 0),
        ({"reach": "passed", "causality": "failed", "finite": "passed"}, 0.75, 1),
        ({"reach": "failed", "causality": "passed", "finite": "passed"}, 0.25, 1),
        ({"reach": "failed", "causality": "passed", "finite": "skipped"}, 0.0, 0),
        # Another failure counts as one bug more, so mending all bugs by breaking more is no 1.
        ({"reach": "passed", "causality": "failed", "finite": "passed", "other": "failed"},
         0.6, 1),
        ({"reach": "passed", "causality": "passed", "finite": "passed", "other": "failed"},
         0.8, 2),
    ],
)  # fmt: skip
def test_the_score_weighs_which_bugs_are_gone(results, score, count):
    """A bug is gone when all its checks were made and passed; the message says how many are."""
    report = Report(outcome="ok", checks=tuple(check(o, name) for name, o in results.items()))
    verdict = make_verdict(replace(CHALLENGE, bugs=BUGS), "net.py", report)
    assert verdict.score == pytest.approx(score)
    assert verdict.message.endswith(f"({count} of 2 bugs are gone)")


def test_all_bugs_gone_is_a_pass():
    """Nothing is said of bugs where none is left."""
    checks = tuple(check(name=n) for n in ("reach", "causality", "finite"))
    verdict = make_verdict(
        replace(CHALLENGE, bugs=BUGS), "net.py", Report(outcome="ok", checks=checks)
    )
    assert (verdict.outcome, verdict.score) == ("passed", 1.0)
    assert "bugs" not in verdict.message


def test_what_follows_from_a_bug_is_no_other_bug():
    """A failure that is folded under a bug's check lowers no score."""
    checks = (
        check("failed", "causality"),
        check("failed", "other", folded_under="causality"),
        check(name="reach"),
    )
    verdict = make_verdict(
        replace(CHALLENGE, bugs=BUGS), "net.py", Report(outcome="ok", checks=checks)
    )
    assert verdict.score == 0.75


def test_a_failure_says_what_and_what_next():
    """The message is the first failure's, the next step its advice."""
    first = check("failed", "causality", message="row 0 saw row 3", advice="look at the mask")
    verdict = grade(first, check("failed", "finite", message="NaN", advice="other"))
    assert verdict.message == "failed: causality: row 0 saw row 3"
    assert verdict.next == "look at the mask"


def test_a_failure_without_words_gives_its_title():
    """A check that says nothing is still named."""
    verdict = grade(check("failed", "causality"))
    assert verdict.message == "failed: causality: causality holds"
    assert verdict.next == "attnlab trace net.py:Net shows every step"


def test_a_pass_counts_its_checks():
    """Who passed sees how much was tried, and is sent to the notes."""
    verdict = grade(check(), check(), check("skipped"))
    assert verdict.message == "passed: 2 of 2 checks hold"
    assert verdict.next.startswith("attnlab explain attention/too-sharp ")


def test_a_crash_names_its_line_and_the_trace():
    """The place of the crash is in the sentence; the table up to it is one command away."""
    crash = Crash(
        op="linear", file="net.py", line=12, operands=(), message="no fit", explanation=""
    )
    verdict = grade(outcome="crashed", trace=Trace(crash=crash))
    assert verdict.message == "crashed: net.py:12: no fit"
    assert verdict.next == "attnlab trace net.py:Net shows the shapes up to the crash"


def test_what_the_lab_says_of_the_job_is_passed_on():
    """The report's own message and hint are better than any general sentence."""
    verdict = grade(outcome="timeout", message="stopped after 10 s", hint="raise --timeout")
    assert verdict.message == "timeout: stopped after 10 s"
    assert verdict.next == "raise --timeout"


def test_weights_that_do_not_match_are_explained():
    """The message of the check that could not compare, and what would help."""
    first = check("error", "matches-reference", message="no weight map", reason="no-weights")
    verdict = grade(check(), first)
    assert verdict.message == "cannot-compare: matches-reference: no weight map"
    assert verdict.next.startswith("keep the parameter names and shapes of Net")


def test_what_pytorch_cannot_do_here_is_no_matter_of_names():
    """Other parameter names would not help."""
    first = check("error", "gradcheck", message="no kernel", reason="no-kernel")
    assert grade(check(), first).next == "use operations that PyTorch supports on a CPU"


def test_the_line_that_hung_is_what_to_fix():
    """Where it is known; else the trace shows how far it gets."""
    hung = check("failed", reason="timeout", file="net.py", line=7)
    assert grade(hung).next == "fix net.py:7, then grade it again"
    assert "shows how far it gets" in grade(check("failed", reason="timeout")).next


def test_the_rest_of_the_report_is_carried_over():
    """Isolation, seconds, seed and output stand in the verdict as they were."""
    verdict = grade(check(), isolation=("rlimits",), seconds=0.5, seed=7, output="hi")
    assert verdict.isolation == ("rlimits",)
    assert (verdict.seconds, verdict.seed, verdict.output) == (0.5, 7, "hi")
    assert (verdict.challenge, verdict.file) == ("attention/too-sharp", "net.py")
    assert verdict.checks == (check(),)


def test_a_started_file_is_run_and_any_other_is_traced_where_it_lies():
    """`run` takes a slug; it would show another file than the one that was graded."""
    report = Report(outcome="ok", checks=(check("failed", reason="crashed"),))
    said = make_verdict(CHALLENGE, f"./{CHALLENGE.name}.py", report).next
    assert said == f"attnlab run {CHALLENGE.slug} shows the shapes up to the crash"
    assert make_verdict(CHALLENGE, "mine.py", report).next.startswith("attnlab trace mine.py:")


def test_what_could_not_even_be_imported_has_no_steps_to_show():
    """The next step is in the file itself."""
    assert grade(outcome="crashed", message="x.py:1: importing x.py raised").next.startswith("fix")


@pytest.mark.parametrize(
    ("id_", "message", "command"),
    [
        ("matches-reference", "wrong", 'attnlab trace too-sharp --sizes "B=4, S=1"'),
        ("finite", "NaN", 'attnlab trace too-sharp --sizes "B=4, S=1"'),
        (
            "gradients-match",
            "the gradient",
            'attnlab trace too-sharp --sizes "B=4, S=1" --backward',
        ),
        ("dropout", "wrong", ""),
    ],
)
def test_what_a_trace_shows_at_other_sizes_is_traced_at_these(id_, message, command):
    """The values of the example may be right; what a trace does not show keeps its own advice."""
    challenge = replace(CHALLENGE, contract=Contract(sizes={"B": 2, "S": 9}))
    failed = replace(
        check("failed", message=message, sizes={"B": 4, "S": 1}, advice="Ask."),
        id=id_,
        shown="float32" if command else "",
    )
    said = make_verdict(
        challenge, "attention/too-sharp/buggy.py", Report(outcome="ok", checks=(failed,))
    )
    assert said.next == (f"{command} shows a call at these sizes" if command else "Ask.")


def test_what_is_not_written_is_to_be_written():
    """No trace and no advice on shapes says more than the place."""
    hole = check("failed", reason="unwritten", file="net.py", line=7, sizes={"S": 1})
    verdict = grade(hole)
    assert verdict.outcome == "crashed"
    assert verdict.next == "write what net.py:7 leaves open, then grade it again"


def test_a_crash_at_other_sizes_is_followed_at_these():
    """`attnlab run` shows the example's sizes, at which nothing may be wrong."""
    contract = Contract(
        sizes={"B": 2, "S": 9, "D": 64},
        init={"width": "D"},
        inputs=(Input(name="x", axes=("B", "S", "D")),),
    )
    challenge = replace(CHALLENGE, contract=contract)
    at_one = {"B": 4, "S": 1, "D": 30, "hd": 5}
    crash = check("failed", reason="crashed", file="net.py", line=3, sizes=at_one, shown="float32")
    verdict = make_verdict(challenge, "net.py", Report(outcome="ok", checks=(crash,)))
    assert verdict.next == (
        'attnlab trace net.py:Net --init width=D --sizes "B=4, S=1, D=30" --input "x: B S D" '
        "shows the shapes up to the crash"
    )
    started = make_verdict(challenge, "./too-sharp.py", Report(outcome="ok", checks=(crash,)))
    assert started.next == (
        'attnlab trace too-sharp --sizes "B=4, S=1, D=30" shows the shapes up to the crash'
    )
    example = replace(crash, sizes={**contract.sizes, "hd": 16})
    verdict = make_verdict(challenge, "net.py", Report(outcome="ok", checks=(example,)))
    assert "--sizes" not in verdict.next
    narrow = Report(outcome="ok", checks=(replace(example, shown="float16"),))
    assert make_verdict(challenge, "./too-sharp.py", narrow).next == (
        "attnlab trace too-sharp --dtype float16 shows the shapes up to the crash"
    )


def test_a_crash_that_no_plain_call_shows_is_followed_in_the_explanation():
    """A trace would run to its end: a step with a cache or an export is another call."""
    crash = check("failed", reason="crashed", file="net.py", line=3, sizes={"S": 1})
    assert grade(crash).next == (
        "see what net.py:3 is given where it raises, in calls of the check finite and not in a "
        "plain one: attnlab explain finite says which"
    )


def test_a_round_that_ran_out_of_time_is_followed_by_a_run():
    """That names the line; after the run itself the line is known."""
    late = ProgramReport(outcome="timeout", message="the program did not answer in time")
    assert next_of_round(late, "char-gpt", yours=True, graded=True) == (
        "look for a loop that never ends; attnlab run char-gpt shows the line at which the time "
        "was up"
    )
    after_a_run = next_of_round(late, "char-gpt", yours=True, graded=False)
    assert after_a_run == "look for a loop that never ends; then attnlab run char-gpt"
