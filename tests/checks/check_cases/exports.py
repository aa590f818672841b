"""Modules that are more than one graph."""

from dataclasses import replace

from trial import ATTENTION, FIRST, SELF, Case, changed

SMALL = "if x.max() > 0:\n            x = x * 1"
BRANCHED = changed(ATTENTION, (FIRST, f"{FIRST}\n        {SMALL}"))
WRONG = {
    "a branch on values": Case(BRANCHED, full=True),
    "a branch on values, where no one asks but the contract": Case(
        BRANCHED, replace(SELF, promises=("averaging", "exportable"))
    ),
}
RIGHT = {
    "by hand": Case(ATTENTION, full=True),
    "a branch on shapes": Case(
        changed(ATTENTION, (FIRST, f"{FIRST}\n        if S > 1:\n            x = x * 1")), full=True
    ),
}
