"""What an interview shows on its way: the clock, the time that counts, the one thing to do next."""

from dataclasses import replace

import pytest

from attnlab.catalogue.load import shipped_folder
from attnlab.catalogue.programs import read_program
from attnlab.practice.stages import OPEN, stage_cards
from attnlab.practice.trend import build_trend
from attnlab.records.practice import Event, Interview
from attnlab.render.interview import HELP, InterviewStartPage, InterviewStatusPage
from attnlab.render.scorecard import HistoryPage
from attnlab.render.screen import plain_text

PROGRAM = read_program(shipped_folder() / "programs" / "char-gpt")
DRAWN = ("mask-one-late", "odd-loss-layout")


def interview_of(*events, minutes=60):
    known = [
        Event(kind=kind, base=PROGRAM.slug, question=question, outcome=outcome, at=at, seconds=at)
        for kind, question, outcome, at in events
    ]
    return Interview(
        number=1, slug=PROGRAM.slug, folder="char-gpt", bugs=DRAWN, minutes=minutes, seed=1,
        started=0.0, events=tuple(known),
    )  # fmt: skip


def status(*events, now=1000.0, minutes=60):
    interview = interview_of(*events, minutes=minutes)
    stages = stage_cards(PROGRAM, interview, now)
    page = InterviewStatusPage(interview=interview, folder="./char-gpt/", stages=stages, now=now)
    return page, " ".join(plain_text(page.show, 80).split())


FAILED, PASSED = ("grade", "", "failed", 100.0), ("grade", "", "passed", 300.0)
BAD_SUBMIT, SUBMIT = ("submit", "", "failed", 200.0), ("submit", "", "passed", 400.0)
STAGE = PROGRAM.stages[0].id
OPENED = ("stage", STAGE, OPEN, 500.0)


@pytest.mark.parametrize(
    ("events", "left"),
    [((), 2600.0), ((PASSED, SUBMIT), 2600.0), ((PASSED, OPENED), None),
     ((PASSED, OPENED, ("stage", STAGE, "passed", 900.0)), None)],
)  # fmt: skip
def test_a_stage_has_no_time_left_to_tell(events, left):
    """The limit is that of the bugs; without one there is nothing left, either."""
    assert status(*events)[0].document()["left"] == left
    assert status(*events, minutes=0)[0].document()["left"] is None


@pytest.mark.parametrize(
    ("events", "says"),
    [
        ((FAILED,), "that of the first grade or submit that passes"),
        ((FAILED, BAD_SUBMIT), "handed in at 3:20, which counts until a grade or submit passes"),
        ((PASSED,), "a grade passed at 5:00: that time counts once you submit"),
        ((BAD_SUBMIT, PASSED), "a grade passed at 5:00: that time counts once you submit"),
        ((("grade", "", "passed", 100.0), BAD_SUBMIT), "handed in at 3:20, which counts until"),
        ((PASSED, SUBMIT), "it passed at 5:00: that time counts"),
        ((PASSED, OPENED), "the bugs took 5:00; each stage has a time of its own"),
    ],
)
def test_the_time_that_counts_is_told_as_the_card_will_have_it(events, says):
    """A right grade counts from when it is handed in; a wrong submit after it undoes it."""
    assert says in status(*events)[1]


@pytest.mark.parametrize(
    ("events", "says"),
    [
        ((), "attnlab run char-gpt shows what it does"),
        ((FAILED,), "attnlab grade char-gpt, once you changed something"),
        ((PASSED,), "attnlab interview submit hands in; attnlab interview stage goes on with"),
        ((PASSED, SUBMIT), f"attnlab interview stage goes on with {STAGE}; attnlab interview end"),
        (
            (PASSED, OPENED),
            "attnlab grade char-gpt grades it with the stage; ",
        ),
        ((PASSED, OPENED, ("stage", STAGE, "failed", 600.0)), "once you changed something"),
        ((PASSED, OPENED, ("stage", STAGE, "passed", 600.0)), f"with {PROGRAM.stages[1].id}"),
    ],
)
def test_the_next_step_fits_what_was_done(events, says):
    """See it, fix it, hand it in; then the next stage, or the end."""
    assert says in status(*events)[0].next


@pytest.mark.parametrize("bugs", [DRAWN, PROGRAM.chosen])
def test_a_round_begins_with_what_one_sees_of_it(bugs):
    """Its symptom where it is known, else the command that shows it; no bug is named."""
    interview = replace(interview_of(), bugs=bugs)
    page = InterviewStartPage(program=PROGRAM, interview=interview, bugs=1, decoys=True, kept=())
    said = plain_text(page.show, 80)
    assert "attnlab run char-gpt shows what it does now" in said
    assert not any(bug in said for bug in DRAWN)
    assert all(text.split(";")[0] in said for _, text in HELP)


@pytest.mark.parametrize("width", [40, 50, 60, 70, 80, 120])
def test_a_history_leaves_out_columns_rather_than_crop_them(width):
    """Which program and what became of it stay to the last."""
    interviews = (interview_of(), replace(interview_of(), number=12, slug="programs/other-one"))
    page = HistoryPage(interviews=interviews, cards=(), trend=build_trend([]), now=99_999.0)
    said = plain_text(page.show, width)
    assert "…" not in said
    assert max(map(len, said.splitlines())) <= width
    assert all(whole in said for whole in ("char-gpt", "other-one", "going on"))
