"""`attnlab stats`, `review` and `plan`: from what was done to what to do."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from attnlab.progress import Progress
from attnlab.records.practice import Event


def answer(kind: str, outcome: str, category: str = "mask", ago: float = 86400.0) -> None:
    with Progress.open() as store:
        store.add_event(
            Event(
                kind="quiz",
                base="attention/too-sharp",
                question=kind,
                outcome=outcome,
                category=category,
                seconds=30.0,
                at=time.time() - ago,
            )
        )


def test_nothing_done_says_how_to_begin(shell):
    """No empty tables."""
    assert "attnlab next starts a challenge" in shell("stats").out
    assert "attnlab next starts a challenge" in shell("review").out
    plan = shell("plan", "--days", "1", "--hours", "1", "--json").json
    assert plan["days"][0]["steps"][0]["command"].startswith("attnlab quiz")


def test_answers_show_in_the_figures_and_come_back(shell):
    """A wrong answer is counted, is due, and its kind of question is asked again."""
    answer("spot", "wrong")
    answer("why", "right", "loss")
    stats = shell("stats", "--json").json
    assert [row["name"] for row in stats["categories"]] == ["mask", "loss"]
    assert "the weakest kind of bug is mask: 0 of 1 right lately" in shell("stats").out
    review = shell("review", "--json").json
    assert review["now"][0]["command"] == "attnlab quiz spot --about due --count 1"
    assert "attnlab review" in shell("plan", "--days", "2").out


def test_review_tells_no_answer_and_asks_what_is_due(shell):
    """The kind of bug answers a question of code to read: it is drawn for the card, and not said;
    any other question of the kind would leave the card due."""
    answer("spot", "wrong", "clean")
    answer("spot", "wrong", "loss")
    answer("why", "wrong", "cost")
    page = shell("review")
    assert "clean" not in page.out
    assert "loss" not in page.out
    assert "attnlab quiz spot --about due --count 2" in page.out
    drawn = shell("quiz", "why", "--about", "due", "--json").json
    shell("quiz", "--answer", f"{drawn['id']}=a")
    left = shell("review", "--json").json["now"]
    assert [(card["kind"], card["count"], card["category"]) for card in left] == [("spot", 2, "")]
    refused = shell("quiz", "why", "--about", "due")
    assert (refused.code, "no why question is due" in refused.err) == (2, True)


@pytest.mark.parametrize("width", ["40", "60", "80"])
def test_a_command_is_never_cut(shell, monkeypatch, width):
    """It is there to be typed: reasons wrap first."""
    monkeypatch.setenv("COLUMNS", width)
    answer("numbers", "wrong", "a-kind-of-bug-with-a-long-name")
    for page in (shell("review").out, shell("plan", "--days", "1", "--hours", "1").out):
        assert "…" not in page
        if width != "40":
            assert "attnlab quiz " in page.partition("next:")[0]
    (card,) = shell("review", "--json").json["now"]
    assert width == "40" or card["command"] in shell("review").out.partition("next:")[0]


def test_a_fix_that_is_due_is_asked_with_another_challenge(shell):
    """A card asks a new variant: one of the kind that is not solved yet."""
    with Progress.open() as store:
        at = time.time() - 90 * 86400
        passed = Event(kind="grade", base="attention/too-sharp", outcome="passed", at=at)
        store.add_grade("attention/too-sharp", "passed", 1.0, "x.py", passed)
    command = shell("review", "--json").json["later"][0]["command"]
    assert command.startswith("attnlab start ")
    assert not command.endswith(" too-sharp")


def test_every_page_has_the_same_next(shell):
    """That of the plan while one is open; a file that is under way comes before it."""
    shell("plan", "--days", "2", "--hours", "1")
    for command in ("attnlab quiz shapes --count 5", "attnlab watch too-sharp"):
        pages = [shell(*words, "--json").json for words in ((), ("plan",), ("stats",))]
        assert [page["next"] for page in pages] == [command] * 3
        assert "plan  day 1 of 2" in shell().out
        shell("start", "too-sharp")
    assert shell("plan", "--json").json["days"][0]["steps"][1]["command"] == command


def test_what_is_due_is_counted_by_what_it_is(shell):
    """A bug that was missed in an interview is no question, and takes an hour."""
    answer("spot", "wrong")
    answer("round", "wrong", "loss")
    review = shell("review")
    assert "1 question and 1 interview due" in review.out
    assert "with more time" in review.out
    page = shell("review", "--json").json
    assert (page["due"], len(page["now"]), page["later"][0]["minutes"]) == (2, 1, 60.0)


def test_a_plan_remembers_its_days(shell):
    """Asked again without them it goes on, with what was answered today."""
    shell("plan", "--days", "2", "--hours", "1")
    answer("why", "right", ago=0.0)
    again = shell("plan", "--json").json
    assert (len(again["days"]), again["today"]) == (2, 1)
    assert sum(step["minutes"] for step in again["days"][0]["steps"]) <= 60
    assert "today 1 answer: about 30 s" in shell("plan").out


def test_progress_goes_to_another_machine_once(shell, monkeypatch, tmp_path):
    """What is exported is added elsewhere, and adding it again changes nothing."""
    answer("spot", "wrong")
    shell("start", "too-sharp")
    assert shell("stats", "--export", "kept.json").code == 0
    assert json.loads(Path("kept.json").read_text(encoding="utf-8"))["format"] == 1
    assert shell("stats", "--export", "kept.json").code == 2
    monkeypatch.setenv("ATTNLAB_HOME", str(tmp_path / "other"))
    assert shell("stats", "--import", "kept.json", "--json").json["count"] == 2
    assert shell("stats", "--import", "kept.json", "--json").json["count"] == 0
    assert shell("stats", "--json").json["answers"] == 1
    assert shell("list", "--status", "started", "--json").json["challenges"]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("plan", "--days", "0"), "a whole number from 1 to 60"),
        (("plan", "--hours", "much"), "a whole number from 1 to 12"),
        (("review", "--minutes", "-1"), "a whole number from 1 to 600"),
        (("plan", "2"), "did you mean attnlab plan --days 2?"),
        (("stats", "--import", "gone.json"), "no such file"),
        (("stats", "--import", "bad.json"), "is not what attnlab stats --export writes"),
        (("stats", "--import", "new.json"), "format 2"),
    ],
)
def test_nonsense_is_refused_in_a_line(shell, args, said):
    """Nothing is changed by a file or a number that means nothing."""
    Path("bad.json").write_text('{"format": 1, "events": [7]}', encoding="utf-8")
    Path("new.json").write_text('{"format": 2}', encoding="utf-8")
    refused = shell(*args)
    assert refused.code == 2
    assert said in refused.err


def test_answers_of_unknown_length_took_no_longer_than_the_day_so_far(shell):
    """Three that were sent within a moment are no three minutes of practice."""
    for number in (1, 2, 3):
        shell("quiz", "--answer", f"numbers.{number}=1")
    assert shell("plan", "--json").json["done"] < 1


def test_what_was_given_up_is_not_next(shell):
    """Its file lies there still, and nothing is left to find in it."""
    shell("start", "too-sharp")
    assert shell("--json").json["next"] == "attnlab watch too-sharp"
    shell("solution", "too-sharp", "--yes")
    for words in ((), ("list", "--all")):
        assert "next: attnlab run " in shell(*words).out


def test_a_fix_that_was_due_counts_for_the_day(shell):
    """Only questions are asked again in a review; a challenge is one of those of the day."""
    with Progress.open() as store:
        for slug, ago in (
            ("attention/too-sharp", 90 * 86400),
            ("attention/it-stops-when-keys-are-few", 0),
        ):
            event = Event(kind="grade", base=slug, outcome="passed", at=time.time() - ago)
            store.add_grade(slug, "passed", 1.0, "x.py", event)
            shell("plan", "--hours", "2")
            steps = shell("plan", "--json").json["days"][0]["steps"]
            left = [each for each in steps if each["command"].startswith("attnlab start")]
            assert len(left) == (3 if ago else 2)
