"""Pages as text: whole, against golden files, at 80 and 120 columns."""

from dataclasses import replace

import pytest
from rich.cells import cell_len
from sample_records import (
    BUILT,
    CRASH,
    FAILED,
    FINDINGS,
    FLAGSHIP,
    LISTED,
    OPS,
    PASSED,
    REPORT,
    SHARP,
    TRACE,
    VERDICT,
)

from attnlab.catalogue.validate import Validation
from attnlab.doctor import HealthCheck
from attnlab.errors import Refused, Unreadable
from attnlab.records import Finding, NextCall, Report, Trace
from attnlab.records.diagnosis import Diagnosis, DiffReport, PairedStep
from attnlab.render.challenge import HintPage, SolutionPage, StartPage
from attnlab.render.check import CheckPage
from attnlab.render.diff import DiffPage
from attnlab.render.doctor import DoctorPage
from attnlab.render.explain import ExplainPage
from attnlab.render.grade import UNDONE, GradePage
from attnlab.render.list import ListPage, OverviewPage
from attnlab.render.run import RunPage
from attnlab.render.screen import plain_text, show_error
from attnlab.render.trace import TracePage

SIZES = {"B": 2, "S": 4, "D": 8, "H": 2}
HIDING = RunPage(
    challenge=FLAGSHIP,
    file="buggy.py as shipped",
    verdict=VERDICT,
    report=REPORT,
    trace=Trace(ops=OPS, crash=CRASH),
    hidden=2,
    next="attnlab start crash-at-out-proj copies the file here",
)
NO_OPS = Report(outcome="crashed", target=BUILT, message="x.py:3: NotImplementedError: write it")
SOLVED = "def f(x):\n    return x + 1\n"


STEP = tuple(
    replace(o, shape=(o.shape[0], 1, *o.shape[2:]), stride=(o.stride[1], *o.stride[1:]))
    for o in OPS[:6]
)
LATER = replace(CRASH, call=3)
DIFFERS = Finding(
    rule="decode-differs",
    file=OPS[0].file,
    line=25,
    op="matmul",
    severity="error",
    message="the step at position 4 first differs here from a pass over all positions: "
    "`scores = q @ k` gives [1, 1], the full pass [0.3503, 0.1853]",
)


def calling(*calls, outcome, **trace):
    """The page of several calls, the first of a module with a cache."""
    found = Trace(ops=OPS[:6], calls=calls, **trace)
    return TracePage(
        target="my.py:M",
        outcome=outcome,
        report=Report(outcome="ok", target=BUILT, trace=found),
        sizes=SIZES,
        containers=("cache: (B H T hd, B H T hd)",),
    )


class Error:
    """An error shown like a page."""

    def __init__(self, error):
        self.error = error

    def show(self, screen):
        show_error(self.error, screen)


DIFFERENT = DiffReport(
    outcome="different",
    max_error=3.17,
    steps=(
        PairedStep(mine="matmul", line=35, shape=(4, 6, 7, 7), theirs="matmul", their_line=44),
        PairedStep(mine="div", line=35, shape=(4, 6, 7, 7), same=False),
        PairedStep(theirs="div", their_line=44, shape=(4, 6, 7, 7), same=False),
    ),
    diagnosis=(
        Diagnosis(
            file="mine.py",
            line=35,
            end_line=35,
            source="scores = q @ k.transpose(-2, -1) / self.head_dim",
            relation="scale",
            message="what this line computes is 2.236 times too small, which is sqrt(hd)",
            confidence=0.95,
            confirmed=True,
            their_file="right.py",
            their_line=44,
            their_source="scores = q @ k.mT / math.sqrt(hd)",
        ),
    ),
)


def differing(report, outcome="different"):
    return DiffPage(
        target="mine.py",
        reference="right.py",
        outcome=outcome,
        report=report,
        next="look at mine.py:35, then attnlab diff mine.py right.py" if report.diagnosis else "",
    )


PAGES = {
    "diff": differing(DIFFERENT),
    "diff-unnamed": differing(replace(DIFFERENT, diagnosis=())),
    "diff-same": differing(DiffReport(outcome="same"), "same"),
    "list": ListPage(rows=LISTED),
    "overview": OverviewPage(
        listing=ListPage(rows=LISTED, here=frozenset({"attention/fine-until-you-look"})),
        next="attnlab watch fine-until-you-look",
    ),
    "run-crash": HIDING,
    "run-revealed": replace(HIDING, trace=TRACE, hidden=0),
    "run-nothing-ran": replace(HIDING, trace=Trace(), report=NO_OPS, hidden=0),
    "trace-crash": TracePage(target="my.py:M", outcome="crashed", report=REPORT, sizes=SIZES),
    "trace-ok": TracePage(
        target="my.py:M",
        outcome="ok",
        report=Report(outcome="ok", target=BUILT, trace=Trace(ops=OPS[:6], notes=("one row",))),
        sizes=SIZES,
    ),
    "trace-calls": calling(
        NextCall(number=2, total=3, inputs="4 tokens, cache 4 -> 8", trace=Trace(ops=OPS[:6])),
        NextCall(number=3, total=3, inputs="4 tokens, cache 8 -> 12", trace=Trace(ops=STEP)),
        outcome="ok",
    ),
    "trace-decode": calling(
        NextCall(number=2, total=4, inputs="1 token, cache 4 -> 5", trace=Trace(ops=STEP)),
        NextCall(number=3, total=4, inputs="1 token", trace=Trace(ops=STEP[:2], crash=LATER)),
        outcome="crashed",
        crash=LATER,
        findings=(DIFFERS,),
    ),
    "trace-step": TracePage(
        target="train.py",
        outcome="ok",
        report=Report(
            outcome="ok",
            target="train.py",
            trace=Trace(
                ops=OPS[:6],
                findings=FINDINGS[1:],
                notes=("optimizer step 2; what comes after it was not run",),
            ),
        ),
        sizes={},
    ),
    "grade-crashed": GradePage(challenge=FLAGSHIP, file="./crash-at-out-proj.py", verdict=VERDICT),
    "grade-failed": GradePage(challenge=SHARP, file="./too-sharp.py", verdict=FAILED),
    "grade-passed": GradePage(challenge=SHARP, file="./too-sharp.py", verdict=PASSED),
    "hint": HintPage(challenge=FLAGSHIP, taken=2),
    "hint-last": HintPage(challenge=FLAGSHIP, taken=3),
    "start": StartPage(challenge=FLAGSHIP, file="./crash-at-out-proj.py", kept="./c.py.1"),
    "solution": SolutionPage(
        challenge=FLAGSHIP,
        shipped=SOLVED.replace("+", "-"),
        solution=SOLVED,
        notes="## Why\nIt is.",
    ),
    "explain": ExplainPage(
        id="causality", kind="check", title="No leak", text="One `line`.", advice="Look."
    ),
    "check": CheckPage(
        examined=(
            Validation(slug="a/sound", counts=("1/1", "1/1", "2/2", "6/6", "ok"), problems=()),
            Validation(
                slug="a/unsound",
                counts=("1/1", "0/1", "2/2", "5/6", "ok"),
                problems=("solution.py: must pass", "mutants/x.py: must be rejected"),
            ),
        )
    ),
    "doctor": DoctorPage(
        vitals=(
            HealthCheck(name="torch", state="ok", text="2.13.0"),
            HealthCheck(name="isolation", state="warn", text="memory limit", hint="not given here"),
            HealthCheck(name="worker", state="fail", text="ended"),
        )
    ),
    "error": Error(Unreadable("a.py:3: syntax error: x = (", "Close it.", "a.py:3")),
    "error-no-hint": Error(Refused("no challenge is called x")),
}


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", PAGES)
def test_page_is_as_it_was(name, width, golden, shown):
    """A change of any page is seen, and looked at, before it is kept."""
    golden(f"{name}-{width}", shown(PAGES[name], width))


@pytest.mark.parametrize("width", [20, 50, 60, 80])
def test_no_line_ends_within_a_command(width):
    """What is copied from a line is the whole command: the first half of one is another command."""
    whole = (
        'attnlab trace net.py --sizes "B=2, S=7" --preset ones --backward',
        "attnlab grade too-sharp --seed 12;",
    )  # fmt: skip
    text = f"see it, then {whole[0]} shows why; {whole[1]} attnlab explain finite says more."
    page = plain_text(lambda screen: screen.do_next(text), width)
    assert " ".join(page.split()) == f"next: {text}"
    assert all(any(each in line for line in page.splitlines()) for each in whole)


@pytest.mark.parametrize("width", [40, 60, 79, 80, 81, 99, 100, 200])
@pytest.mark.parametrize("name", [name for name in PAGES if not name.startswith("error")])
def test_no_page_is_wider_than_the_screen(name, width, shown):
    """Nothing but a command, which is not broken, is left to the terminal to wrap."""
    lines = (line for line in shown(PAGES[name], width).splitlines() if "attnlab " not in line)
    assert max(map(cell_len, lines)) <= width


@pytest.mark.parametrize("name", [name for name in PAGES if not name.startswith("error")])
def test_ascii_terminal_gets_ascii(name, shown):
    """A page can be printed where the encoding is not UTF-8."""
    text = shown(PAGES[name], encoding="ascii")
    assert text.isascii()


def test_error_stays_on_one_line(shown):
    """However long a message is, a script finds it on the line that begins with `error:`."""
    text = shown(Error(Refused("word " * 60, "hint " * 60)))
    assert [line.partition(":")[0] for line in text.splitlines()] == ["error", "hint"]


def test_hidden_findings_are_counted_and_not_named(shown):
    """What would spoil the puzzle is nowhere on the page."""
    text = shown(HIDING)
    assert "2 findings hidden" in text
    assert "broadcast" not in text
    assert not any(line.startswith("!") for line in text.splitlines())


def test_passing_says_so_without_colour(shown):
    """The verdict is a word and a mark on the first line."""
    assert shown(PAGES["grade-passed"]).splitlines()[0].startswith("✓ passed")
    assert shown(PAGES["grade-failed"]).splitlines()[0].startswith("✗ failed at matches-reference")


def test_a_score_of_a_grade_that_ended_early_is_the_least_it_can_be(shown):
    """What was not looked at may hold: --all would tell."""
    unseen = replace(FAILED.checks[0], id="reach", outcome="skipped", reason="unseen")
    early = replace(FAILED, checks=(*FAILED.checks, unseen), score=0.5)
    page = GradePage(challenge=SHARP, file="x", verdict=early)
    assert shown(page).splitlines()[0].endswith("score at least 0.50")
    assert shown(PAGES["grade-failed"]).splitlines()[0].endswith(f"score {FAILED.score:.2f}")
    most = replace(early, checks=(*FAILED.checks, *[unseen] * 20))
    assert "score" not in shown(replace(page, verdict=most)).splitlines()[0]


def test_advice_is_not_said_twice(shown):
    """Where the page ends with a check's advice, the check itself does not repeat it."""
    advice = FAILED.checks[0].advice
    text = " ".join(
        shown(GradePage(challenge=SHARP, file="x", verdict=replace(FAILED, next=advice))).split()
    )
    assert text.count(advice) == 1


def test_a_long_path_is_folded_and_not_cut(shown):
    """What one needs to copy stands there whole."""
    path = "/very/long" * 20
    check = replace(FAILED.checks[0], message=f"raised at {path}.py")
    verdict = replace(FAILED, checks=(check,))
    text = shown(GradePage(challenge=SHARP, file="x", verdict=verdict))
    assert path in "".join(text.split())


def test_undone_settings_are_a_note_of_any_verdict(shown):
    """A harmless setting is no failure, and is not what the file printed."""
    undone = f"{UNDONE}number of threads"
    for verdict in (PASSED, FAILED):
        page = GradePage(challenge=SHARP, file="x", verdict=replace(verdict, output=undone))
        text = shown(page)
        assert f"· {undone}" in text
        assert "the file printed" not in text
