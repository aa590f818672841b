"""What several interviews show: how the last ones went, and which kinds of bugs are missed."""

from __future__ import annotations

from collections.abc import Sequence

from attnlab.catalogue.categories import CATEGORIES
from attnlab.records.practice import CategoryTrend, RoundSummary, Stats, Trend
from attnlab.records.scorecard import BugCard, RoundCard, TaskCard

ROUNDS = 5
LATELY = 4  # bugs of a category that are shown


def build_trend(found: Sequence[RoundCard], stats: Stats | None = None) -> Trend:
    """`found` are the cards of all interviews that ended; `stats` are those of all answers, which
    say what is weak here as elsewhere. A task about a kind of bug counts as a
    bug does; of a question it is not told whether anything was fixed or named."""
    by_category: dict[str, list[BugCard | TaskCard]] = {}
    cards = sorted(found, key=lambda card: card.number)
    for bug in (bug for card in cards for bug in card.bugs):
        if bug.category in CATEGORIES:
            by_category.setdefault(bug.category, []).append(bug)
    order = [row.name for row in stats.categories] if stats else []
    names = [name for name in order if name in by_category]
    names += [name for name in by_category if name not in names]
    return Trend(
        rounds=tuple(summarize(card) for card in cards[-ROUNDS:]),
        categories=tuple(_category(name, by_category[name]) for name in names),
        weakest=stats.weakest.name if stats and stats.weakest else "",
    )


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
