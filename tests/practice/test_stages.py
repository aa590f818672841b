"""Which stage is next, and what became of each, from events alone."""

from dataclasses import replace

import pytest

from attnlab.catalogue.load import shipped_folder
from attnlab.catalogue.programs import read_program
from attnlab.errors import Refused
from attnlab.practice.stages import OPEN, choose_stage, open_stage, stage_cards
from attnlab.records.practice import Event, Interview

CHAR_GPT = read_program(shipped_folder() / "programs" / "char-gpt")
ONE = replace(CHAR_GPT.stages[0], id="one", order=1, minutes=20)
PROGRAM = replace(CHAR_GPT, stages=(ONE, replace(ONE, id="two", order=2)))
PASSED = Event(kind="submit", base=PROGRAM.slug, outcome="passed", seconds=600.0)


def stage(name, outcome, seconds=0.0, text=""):
    return Event(
        kind="stage", base=PROGRAM.slug, question=name, outcome=outcome, seconds=seconds, text=text
    )


def test_stages_open_in_order():
    """After the bugs the first, after it has passed the second, then none."""
    with pytest.raises(Refused, match="there is no grade yet"):
        choose_stage(PROGRAM, "", [])
    assert choose_stage(PROGRAM, "", [PASSED]).id == "one"
    with pytest.raises(Refused, match="one comes before two"):
        choose_stage(PROGRAM, "two", [PASSED])
    done = [PASSED, stage("one", OPEN), stage("one", "passed")]
    assert choose_stage(PROGRAM, "", done).id == "two"
    with pytest.raises(Refused, match="every stage of char-gpt has passed"):
        choose_stage(PROGRAM, "", [*done, stage("two", "passed")])
    with pytest.raises(Refused, match="has no stages"):
        choose_stage(replace(PROGRAM, stages=()), "", done)
    assert open_stage(done) == "one"
    assert open_stage([PASSED]) == ""


def test_the_scorecard_tells_of_each_stage():
    """Passed with the time it took, failed with the first check, opened only, never opened."""
    grade = Event(kind="grade", base=PROGRAM.slug)
    events = (stage("one", OPEN, 600.0), grade, stage("one", "failed", 700.0, "steps differ"))
    interview = Interview(
        number=1, slug=PROGRAM.slug, folder="char-gpt", bugs=(), minutes=60, seed=1, started=0.0,
        events=events,
    )  # fmt: skip
    first, second = stage_cards(PROGRAM, interview)
    assert (first.outcome, first.message, first.seconds) == ("failed", "steps differ", 100.0)
    assert second.outcome == "locked"
    more = (grade, stage("one", "passed", 900.0), stage("two", OPEN))
    passed = replace(interview, events=(*events, *more))
    first, second = stage_cards(PROGRAM, passed)
    assert (first.outcome, first.message, first.seconds, first.grades) == ("passed", "", 300.0, 2)
    assert second.outcome == "open"
