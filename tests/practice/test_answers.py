"""What was answered is read off the events: how often it was right, at once, and how fast."""

from __future__ import annotations

from attnlab.practice.answers import UNTOUCHED, all_answers, build_stats
from attnlab.records.practice import Answer, Event, Mark

SLUG, CATEGORIES = "attention/leaks", {"attention/leaks": "mask"}


def event(kind: str, at: float, **more: object) -> Event:
    return Event(kind=kind, base=SLUG, at=at, **more)


def answered(*marks: Mark, category: str = "mask") -> list[Answer]:
    return [
        Answer(category=category, kind="spot", mark=mark, seconds=10.0 * n, at=float(n))
        for n, mark in enumerate(marks, 1)
    ]


def test_a_challenge_counts_once_it_is_passed_or_given_up():
    """At once is right, after help or a wrong try partly; the solution before that is wrong."""
    passed = event("grade", 200, outcome="passed")
    failed = event("grade", 150, outcome="failed")
    again = event("grade", 400, outcome="passed")
    cases = {
        ("right",): [event("start", 100), passed],
        ("partly",): [event("start", 100), failed, passed],
        ("wrong",): [event("start", 100), event("hint", 110), event("solution", 120)],
        (): [event("start", 100), failed],
        ("right", "partly"): [passed, event("start", 300), event("hint", 310), again],
    }
    for marks, events in cases.items():
        found = all_answers(events, CATEGORIES, [])
        assert tuple(answer.mark for answer in found) == marks
    assert all_answers(cases[("right",)], CATEGORIES, [])[0].seconds == 100


def test_a_grade_of_the_file_as_it_was_given_is_no_try():
    """Who looks first at what fails has not tried yet."""
    untouched = event("grade", 120, outcome="failed", question=UNTOUCHED)
    events = [event("start", 100), untouched, event("grade", 200, outcome="passed")]
    assert [answer.mark for answer in all_answers(events, CATEGORIES, [])] == ["right"]


def test_a_solved_file_that_is_graded_again_is_no_answer():
    """attnlab watch grades it on every save; once it was put back as it was given, it counts."""
    passes = [event("grade", at, outcome="passed") for at in (100, 101, 102)]
    failed = event("grade", 103, outcome="failed")
    assert len(all_answers([*passes, failed, *passes], CATEGORIES, [])) == 1
    given = event("grade", 104, outcome="failed", question=UNTOUCHED)
    assert len(all_answers([*passes, given, *passes], CATEGORIES, [])) == 2


def test_a_question_that_was_judged_before_is_no_answer():
    """Its right answer was shown; another question of the kind counts."""
    events = [
        event("quiz", at, question="shapes", outcome=outcome, text=name)
        for at, outcome, name in ((1, "wrong", "shapes.3"), (2, "right", "shapes.3"),
                                  (3, "right", "shapes.4"))
    ]  # fmt: skip
    assert [answer.mark for answer in all_answers(events, {}, [])] == ["wrong", "right"]


def test_a_solution_read_after_the_pass_is_no_answer():
    """Who compares the own fix with the solution has not looked it up."""
    events = [event("grade", 100, outcome="passed"), event("solution", 200)]
    assert [a.mark for a in all_answers(events, CATEGORIES, [])] == ["right"]


def test_a_night_does_not_count_as_work():
    """The clock of a challenge that lay over night stops."""
    events = [event("start", 0), event("grade", 50_000, outcome="passed")]
    assert all_answers(events, CATEGORIES, [])[0].seconds == 3600


def test_the_weakest_kind_of_bug_stands_first():
    """By the last answers, so that what was learned counts; the trend needs as many before."""
    better = answered("wrong", "wrong", "right", "right", "right", "right")
    worse = answered(*["right"] * 4, *["wrong"] * 4, category="loss")
    rows = build_stats([*better, *worse]).categories
    assert [(row.name, row.trend) for row in rows] == [("loss", "worse"), ("mask", "")]
    assert (rows[1].answers, rows[1].right) == (6, 4)
    (mask,) = build_stats([*answered("wrong", "wrong"), *better]).categories
    assert mask.trend == "better"  # four against the four before


def test_the_median_of_an_even_count_lies_between_the_two_in_the_middle():
    """Of 10 to 60 seconds it is 35; of one answer it is that one."""
    for count, median in ((6, 35.0), (5, 30.0), (1, 10.0), (0, 0.0)):
        rows = build_stats(answered(*["right"] * count)).categories
        assert [row.median_seconds for row in rows] == [median] * bool(count)


def test_code_without_a_bug_is_no_weakest_kind():
    """Who takes right code for wrong is not told to practise a kind of bug that there is not."""
    clean = answered("wrong", "wrong", category="clean")
    assert build_stats(clean).weakest is None
    found = build_stats([*clean, *answered("wrong", "right", category="loss")])
    assert [row.name for row in found.categories] == ["loss", "clean"]
    assert found.weakest == found.categories[0]


def test_what_was_shown_and_typed_in_is_no_solution_of_ones_own():
    """Until the challenge is started afresh."""
    given_up = [event("start", 100), event("hint", 110), event("solution", 120)]
    typed = [*given_up, event("grade", 130, outcome="passed")]
    assert [a.mark for a in all_answers(typed, CATEGORIES, [])] == ["wrong"]
    afresh = [*given_up, event("start", 200), event("grade", 230, outcome="passed")]
    assert [a.mark for a in all_answers(afresh, CATEGORIES, [])] == ["wrong", "right"]
