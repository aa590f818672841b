"""What several interviews show: the last ones, and the kinds of bugs that are missed."""

from dataclasses import replace

from attnlab.practice.answers import build_stats
from attnlab.practice.trend import build_trend
from attnlab.records.practice import Answer
from attnlab.records.scorecard import BugCard, Rating, Scorecard
from attnlab.render.scorecard import practise


def card(number, **found):
    """One bug of each category named, found and fixed, found, or missed."""
    bugs = tuple(
        BugCard(id=category, category=category, level=2, fixed=how == "fixed", named=how == "named",
                reason=False, fixed_at=None, named_at=None, why="", find="")
        for category, how in found.items()
    )  # fmt: skip
    return Scorecard(number=number, slug="programs/p", title="", outcome="failed", seconds=60.0,
                     minutes=60, late=False, bugs=bugs, parts=(), goals=(), new_fault=False,
                     changed_lines=0, grades=0, hints=0, asked=(), questions=0,
                     rating=Rating(name="early"))  # fmt: skip


def test_the_kind_that_was_missed_most_comes_first():
    """Found but not fixed is better than missed; rounds are in the order they were done."""
    trend = build_trend([
        card(1, mask="fixed", loss="named", data=""),
        card(2, mask="fixed", loss="fixed", data="fixed"),
    ])  # fmt: skip
    assert [one.category for one in trend.categories] == ["data", "loss", "mask"]
    assert (trend.weakest, trend.categories[0].lately) == ("", (False, True))
    assert [(one.number, one.found, one.fixed) for one in trend.rounds] == [(1, 2, 1), (2, 3, 3)]


def test_of_kinds_that_were_fixed_alike_the_one_that_was_never_named_is_weaker():
    """And a kind that was missed long ago is not: the last four count, which are all that is
    shown."""
    cards = [card(n, mask="" if n < 3 else "fixed", loss="fixed") for n in range(1, 7)]
    cards[-1] = replace(
        cards[-1], bugs=tuple(replace(b, named=b.id == "mask") for b in cards[-1].bugs)
    )
    trend = build_trend(cards)
    assert [one.category for one in trend.categories] == ["loss", "mask"]
    assert [len(one.lately) for one in trend.categories] == [4, 4]


def test_the_weakest_kind_is_that_of_all_answers():
    """Stats, plan and scorecards name the same one, whatever was missed in rounds alone."""
    cards = [card(1, mask="")] + [card(n, mask="fixed") for n in range(2, 6)]
    weak = build_stats([Answer(category="loss", kind="why", mark="wrong", seconds=1.0, at=1.0)])
    trend = build_trend(cards, weak.weakest)
    assert (trend.weakest, trend.categories[0].found, trend.categories[0].bugs) == ("loss", 4, 5)
    assert "practises what is weakest in all answers" in practise(trend, cards[-1])
    missed = build_trend([*cards, card(6, loss="")], weak.weakest)
    assert "practises what was missed" in practise(missed, card(6, loss=""))
    assert len(build_trend(cards * 2).rounds) == 5
