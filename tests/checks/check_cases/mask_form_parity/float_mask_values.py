"""Masks of floats whose biases weigh too much, too little, or learn nothing."""

from sources import ADDITIVE
from trial import ATTENTION, Case, changed

from attnlab.records import Code

FILL = "scores = scores.masked_fill(mask[:, None], -torch.inf)"
ADD = """scores = (scores + mask[:, None] if mask.is_floating_point() else
                      scores.masked_fill(mask[:, None], -torch.inf))"""
RIGHT_FILE = Code(file="solution.py", text=changed(ATTENTION, (FILL, ADD)), name="M")


def form(added):
    return Case(
        changed(RIGHT_FILE.text, ("mask[:, None] if", f"{added} if")),
        ADDITIVE,
        reference=RIGHT_FILE,
    )


WRONG = {
    "divided with the scores": form("mask[:, None] / 2"),
    "added twice": form("2 * mask[:, None]"),
    "detached": form("mask[:, None].detach()"),
}
RIGHT = {
    "added": form("mask[:, None]"),
    "added as it is broadcast": form("mask[:, None].expand_as(scores)"),
}
