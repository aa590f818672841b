"""A page of each kind that is written as HTML or in a format, made of fixed records."""

from __future__ import annotations

from sample_records import BUILT, FAILED, FLAGSHIP, OPS, PASSED, REPORT, SHARP, VERDICT, check

from attnlab.records import Limits, Report, Suspicion, Trace, Triage, Verdict
from attnlab.records.batch import Alike, BatchRun, BatchSummary, Graded, Reason, Told
from attnlab.records.diagnosis import Diagnosis, DiffReport, PairedStep
from attnlab.records.practice import Trend
from attnlab.records.program import PartResult
from attnlab.records.scorecard import BugCard, Rating, Scorecard, StageCard
from attnlab.records.trace import Heat
from attnlab.render.batch import BatchPage
from attnlab.render.check import CheckPage
from attnlab.render.diff import DiffPage
from attnlab.render.grade import GradePage
from attnlab.render.scorecard import ScorecardPage
from attnlab.render.trace import TracePage
from attnlab.render.triage import TriagePage

EVIL = "<script>alert(1)</script>\" onmouseover='x' {{ 7*7 }} \x1b[2J \u202e"
SIZES = {"B": 2, "S": 4, "D": 8, "H": 2}
HEAT = Heat(title="scores (S, S') on line 25", rows=((0.0, -1.0), (float("nan"), 1.0)), index=9)
WRONG = Diagnosis(
    file="my.py", line=3, end_line=3, source="x / d", relation="scale", message="2 times that",
    confidence=0.9, confirmed=True, their_file="right.py", their_line=4, their_source="x / d**0.5",
)  # fmt: skip
STEP = PairedStep(mine="matmul", line=3, shape=(2, 4), theirs="matmul", same=False)
CAUSE = Suspicion(
    rank=1, layer="trace", rule="silent-broadcast", severity="warning", confidence=0.8,
    file="my.py", line=3, message="(2, 4) and (4, 2)", evidence="row 3", experiment="print them",
)  # fmt: skip
RUN = BatchRun(
    challenge="attention/too-sharp", digest="d", attnlab="0.1.0", sources="s", torch="2.13",
    limits=Limits(), seed=7, total=3,
)  # fmt: skip


def graded(name: str, outcome: str) -> Graded:
    checks = (check("finite", "failed", "NaN"),) if outcome == "failed" else ()
    verdict = Verdict(
        challenge=RUN.challenge, file=f"{name}.py", outcome=outcome, score=0.5, checks=checks,
        message=f"{outcome}: {name}",
    )  # fmt: skip
    return Graded(name=name, digest="", alike="a", verdict=verdict, passed=1)


ROWS = (graded("ann", "passed"), graded("bob", "failed"))
SUMMARY = BatchSummary(
    run=RUN, file="class.run", graded=ROWS, outcomes={"passed": 1, "failed": 1},
    alike=(Alike(names=("ann", "bob")),),
    reasons=(Reason(id="finite", names=("bob",), told=(Told(message="NaN", names=("bob",)),)),),
)  # fmt: skip
CARD = Scorecard(
    number=3, slug="programs/char-gpt", title="A small GPT", outcome="failed", seconds=1800.0,
    minutes=60, late=True, goals=(),
    parts=(PartResult(id="training", title="it trains", outcome="failed"),),
    bugs=(BugCard(id="mask", category="mask", level=2, fixed=True, named=False, reason="",
                  fixed_at=60.0, named_at=None, why="it leaks", find="look at it"),),
    new_fault=False, changed_lines=3, grades=2, hints=1, asked=(), questions=4,
    rating=Rating(name="solid", next="strong", missing=("every bug named",)),
    stages=(StageCard(id="kv", title="A cache", outcome="locked"),),
)  # fmt: skip
TREND = Trend(rounds=(), categories=(), weakest="")
PAGES = {
    "trace": TracePage(target="my.py:M", outcome="crashed", report=REPORT, sizes=SIZES, next="x"),
    "heat": TracePage(
        target="my.py:M", outcome="ok", sizes=SIZES,
        report=Report(outcome="ok", target=BUILT, trace=Trace(ops=OPS, values=(HEAT,))),
    ),
    "triage": TriagePage(
        triage=Triage(target="my.py", outcome="found", suspicions=(CAUSE,), looked_at=("a trace",)),
        report=Report(outcome="ok"),
    ),
    "diff": DiffPage(
        target="my.py", reference="right.py", outcome="different",
        report=DiffReport(outcome="different", max_error=0.5, diagnosis=(WRONG,), steps=(STEP,)),
    ),
    "grade": GradePage(challenge=SHARP, file="./too-sharp.py", verdict=FAILED, diagnosis=(WRONG,)),
    "passed": GradePage(challenge=SHARP, file="./too-sharp.py", verdict=PASSED),
    "crashed": GradePage(challenge=FLAGSHIP, file="./c.py", verdict=VERDICT),
    "scorecard": ScorecardPage(card=CARD, trend=TREND),
    "batch": BatchPage(summary=SUMMARY),
    "plain": CheckPage(examined=()),
}  # fmt: skip
