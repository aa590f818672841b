"""Sequences in one row that see each other, or each other's positions."""

from sources import PACKED, ROWS
from trial import Case, changed

SAME = "same = segments[:, :, None] == segments[:, None, :]"
PLACE = "place = same.tril().sum(-1) - 1"


def packed(*pairs):
    return Case(changed(PACKED, *pairs), ROWS, None)


WRONG = {
    "no mask": packed(("~same[:, None]", "~same[:, None] & False")),
    "an overlap of one": packed(
        (SAME, (f"{SAME}\n        last = segments.roll(-1, 1)\n        last[:, -1] = -1\n"
         "        near = same | (last[:, None, :] == segments[:, :, None])")),
        ("~same[:, None]", "~near[:, None]"),
    ),
    "later segments see earlier ones": packed(
        (SAME, f"{SAME}\n        wide = segments[:, :, None] >= segments[:, None, :]"),
        ("~same[:, None]", "~wide[:, None]"),
    ),
    "positions that run on": packed((PLACE, "place = torch.arange(len(x[0])).expand_as(segments)")),
}  # fmt: skip
RIGHT = {
    "segments": packed(),
    "segments from a loop": packed(
        (SAME, "same = torch.stack([s[:, None] == s[None] for s in segments])")
    ),
}
