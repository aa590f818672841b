"""The rating of an interview, what the next one takes, and what hints cost."""

import pytest

from attnlab.practice.rating import cost_of_hints, rate
from attnlab.records.scorecard import BugCard


def bug(fixed=True, named=True, reason="said"):
    return BugCard(id="b", category="mask", level=2, fixed=fixed, named=named, reason=reason,
                   fixed_at=None, named_at=None, why="", find="")  # fmt: skip


BEST = {"right": True, "clean": True, "late": False, "slips": 0, "hints": 0}
LEFT = bug(False, False, "")


@pytest.mark.parametrize(
    ("bugs", "changed", "name", "missing"),
    [
        ([bug()] * 4, {}, "strong", ()),
        ([bug()] * 4, {"hints": 1}, "solid", ("no hint and no triage",)),
        ([bug()] * 4, {"slips": 2}, "solid", ("at most one note that points at no bug",)),
        ([bug(reason="open")] * 4, {}, "solid",
         ("each bug named with a reason that you ticked",)),
        ([bug()] * 3 + [LEFT], {"right": False}, "solid",
         ("every part right", "each bug named with a reason that you ticked")),
        ([bug()] * 4, {"late": True}, "partial", ("handed in in time",)),
        ([bug()] * 4, {"hints": 5}, "partial", ("no more hints and triages than bugs",)),
        ([bug()] * 4, {"clean": False, "right": False}, "partial", ("nothing broken by a fix",)),
        ([bug(fixed=False)] * 2 + [LEFT] * 2, {"right": False}, "partial",
         ("three quarters of the bugs fixed",)),
        ([bug()] + [LEFT] * 3, {"right": False}, "early", ("half of the bugs found",)),
        ([bug(fixed=None, named=False)], {"right": False}, "early", ("half of the bugs found",)),
    ],
)  # fmt: skip
def test_a_rating_says_what_the_next_one_takes(bugs, changed, name, missing):
    """Each demand alone keeps an interview from the rating that takes it, and is named."""
    rating = rate(bugs, **(BEST | changed))
    assert (rating.name, rating.missing) == (name, missing)


def test_hints_cost_what_the_rating_says():
    """What is told when a hint is taken is what the rating then is at most."""
    assert cost_of_hints(0, 4) == ""
    assert cost_of_hints(1, 4) == "1 hint so far: the rating is solid at most, partial from 5 on"
    assert cost_of_hints(0, 4, 1).startswith("1 triage so far: the rating is solid at most")
    assert cost_of_hints(3, 4, 2) == "3 hints and 2 triages so far: the rating is partial at most"
    assert cost_of_hints(5, 4) == "5 hints so far: the rating is partial at most"
    for hints in range(1, 9):
        name = rate([bug()] * 4, **(BEST | {"hints": hints})).name
        assert f"the rating is {name} at most" in cost_of_hints(hints, 4)
