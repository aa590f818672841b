"""What several interviews show: the last ones, and the kinds of bugs that are missed."""

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


def test_rounds_are_in_the_order_they_were_done():
    """With what was found and fixed in each."""
    trend = build_trend([
        card(1, mask="fixed", loss="named", data=""),
        card(2, mask="fixed", loss="fixed", data="fixed"),
    ])  # fmt: skip
    assert [one.lately for one in trend.categories if one.category == "data"] == [(False, True)]
    assert [(one.number, one.found, one.fixed) for one in trend.rounds] == [(1, 2, 1), (2, 3, 3)]


def test_the_weakest_kind_is_that_of_all_answers():
    """Stats, plan and scorecards name the same one, in the same order, whatever was missed in
    rounds alone."""
    cards = [card(1, mask="", loss="fixed")] + [card(n, mask="fixed") for n in range(2, 6)]
    marks = {"mask": "right", "loss": "wrong"}
    weak = build_stats(
        [Answer(category=c, kind="why", mark=m, seconds=1.0, at=1.0) for c, m in marks.items()]
    )
    trend = build_trend(cards, weak)
    assert [one.category for one in trend.categories] == ["loss", "mask"]
    assert (trend.weakest, trend.categories[1].found, trend.categories[1].bugs) == ("loss", 4, 5)
    assert "practises what is weakest in all answers" in practise(trend, cards[-1])
    missed = build_trend([*cards, card(6, loss="")], weak)
    assert "practises what was missed" in practise(missed, card(6, loss=""))
    assert len(build_trend(cards * 2).rounds) == 5
