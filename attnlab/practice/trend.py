"""What several interviews show: how the last ones went, and which kinds of bugs are missed."""

from __future__ import annotations

from collections.abc import Sequence

from attnlab.catalogue.categories import CATEGORIES
from attnlab.records.practice import CategoryStats, CategoryTrend, RoundSummary, Trend
from attnlab.records.scorecard import BugCard, RoundCard, TaskCard

ROUNDS = 5
LATELY = 4  # bugs of a category by which it is called weak


def build_trend(found: Sequence[RoundCard], weakest: CategoryStats | None = None) -> Trend:
    """`found` are the cards of all interviews that ended; `weakest` is that of all answers, so that
    stats, plan and scorecards say the same. A task about a kind of bug counts as a
    bug does; of a question it is not told whether anything was fixed or named."""
    by_category: dict[str, list[BugCard | TaskCard]] = {}
    cards = sorted(found, key=lambda card: card.number)
    for bug in (bug for card in cards for bug in card.bugs):
        if bug.category in CATEGORIES:
            by_category.setdefault(bug.category, []).append(bug)
    weakest_first = sorted(by_category, key=lambda category: _strength(by_category[category]))
    return Trend(
        rounds=tuple(summarize(card) for card in cards[-ROUNDS:]),
        categories=tuple(_category(category, by_category[category]) for category in weakest_first),
        weakest=weakest.name if weakest else "",
    )


def _strength(bugs: Sequence[BugCard | TaskCard]) -> tuple[float, float, float, int]:
    """The share of the latest ones that was found, fixed, named; the more bugs, the weaker."""
    last = bugs[-LATELY:]
    found = sum(bug.found for bug in last) / len(last)
    whole = [bug for bug in last if not isinstance(bug, TaskCard)]
    fixed = sum(bool(bug.fixed) for bug in whole) / len(whole) if whole else found
    named = sum(bug.named for bug in whole) / len(whole) if whole else found
    return found, fixed, named, -len(last)


def _category(category: str, bugs: Sequence[BugCard | TaskCard]) -> CategoryTrend:
    return CategoryTrend(
        category=category,
        to_fix=sum(bug.fixed is not None or not isinstance(bug, TaskCard) for bug in bugs),
        to_name=sum(not isinstance(bug, TaskCard) for bug in bugs),
        bugs=len(bugs),
        found=sum(bug.found for bug in bugs),
        fixed=sum(bool(bug.fixed) for bug in bugs),
        named=sum(bool(bug.named) for bug in bugs),
        lately=tuple(bug.found for bug in bugs[-LATELY:]),
    )


def summarize(card: RoundCard) -> RoundSummary:
    """An interview in a line."""
    passed = sum(stage.outcome == "passed" for stage in card.stages)
    return RoundSummary(
        number=card.number,
        slug=card.slug,
        bugs=len(card.bugs),
        found=card.found,
        fixed=card.fixed,
        named=card.named,
        hints=card.hints,
        seconds=card.seconds,
        late=card.late,
        rating=card.rating.name,
        started=card.started,
        stages=f"{passed} of {len(card.stages)}" if card.stages else "",
    )
