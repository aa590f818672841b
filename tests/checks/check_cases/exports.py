"""Modules that are more than one graph."""

from trial import ATTENTION, FIRST, Case, changed

SMALL = "if x.max() > 0:\n            x = x * 1"
WRONG = {
    "a branch on values": Case(changed(ATTENTION, (FIRST, f"{FIRST}\n        {SMALL}")), full=True),
}
RIGHT = {
    "by hand": Case(ATTENTION, full=True),
    "a branch on shapes": Case(
        changed(ATTENTION, (FIRST, f"{FIRST}\n        if S > 1:\n            x = x * 1")), full=True
    ),
}
