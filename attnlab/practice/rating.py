"""The rating of an interview: a word and not a number, with what the next one takes.

A number would say more than four bugs tell. What a rating takes stands in one table, so that the
card and the cost of a hint agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attnlab.records.scorecard import RATINGS, BugCard, Rating, TaskCard

Demands = Mapping[str, Mapping[str, bool]]  # of each rating, what it takes and whether that holds


def rate(
    bugs: Sequence[BugCard], *, right: bool, clean: bool, late: bool, slips: int, hints: int
) -> Rating:
    """The highest rating of which everything holds, and of all below. `right`: every part is right;
    `clean`: nothing else is wrong; `slips`: notes that point at no bug; `hints`:
    those of attnlab triage, which names lines, among them."""
    count, fixed = len(bugs), sum(bool(bug.fixed) for bug in bugs)
    demands = {
        "partial": {"half of the bugs found": 2 * sum(bug.found for bug in bugs) >= count},
        "solid": {
            "three quarters of the bugs fixed": 4 * fixed >= 3 * count,
            "nothing broken by a fix": clean,
            "handed in in time": not late,
            "no more hints and triages than bugs": hints <= count,
        },
        "strong": {
            "every part right": right and fixed == count,
            "each bug named with a reason that you ticked": all(b.reason == "said" for b in bugs),
            "at most one note that points at no bug": slips <= 1,
            "no hint and no triage": not hints,
        },
    }
    return _highest(demands)


def rate_tasks(tasks: Sequence[TaskCard], *, late: bool) -> Rating:
    """The same for a round of tasks, by their points."""
    points, count = sum(task.points for task in tasks), len(tasks)
    demands = {
        "partial": {"half of the points": 2 * points >= count},
        "solid": {
            "three quarters of the points": 4 * points >= 3 * count,
            "done in time": not late,
        },
        "strong": {
            "nine tenths of the points": 10 * points >= 9 * count,
            "no task wrong or left out": all(t.outcome in ("right", "partly") for t in tasks),
            "no hint": not any(task.hints for task in tasks),
        },
    }
    return _highest(demands)


def _highest(demands: Demands) -> Rating:
    reached = RATINGS[0]
    for name, demanded in demands.items():
        if missing := tuple(text for text, holds in demanded.items() if not holds):
            return Rating(name=reached, next=name, missing=missing)
        reached = name
    return Rating(name=reached)


def price_of_a_hint(hints: int, bugs: int) -> str:
    """What one more hint makes of the rating."""
    return f"then the rating is {'solid' if hints < bugs else 'partial'} at most"


def cost_of_hints(hints: int, bugs: int, triages: int = 0) -> str:
    """What the help of an interview so far costs: `1 hint so far: the rating is solid at most`."""
    counts = [(hints, "hint"), (triages, "triage")]
    so_far = " and ".join(f"{n} {one}" + "s" * (n > 1) for n, one in counts if n)
    if not so_far:
        return ""
    hints += triages
    best, more = ("solid", f", partial from {bugs + 1} on") if hints <= bugs else ("partial", "")
    return f"{so_far} so far: the rating is {best} at most{more}"
