"""Modules that take booleans and floats, and do not mean the same by them."""

from sources import ADDITIVE
from trial import ATTENTION, KERNEL, Case, changed

FILL = "scores = scores.masked_fill(mask[:, None], -torch.inf)"
BOTH = """add = mask.is_floating_point()
            scores = scores + mask[:, None] if add else scores.masked_fill(mask[:, None], -1e30)"""
MADE = (
    "scores = scores + (mask if mask.is_floating_point() else "
    "torch.zeros(mask.shape).masked_fill(mask, -torch.inf))[:, None]"
)


def form(line):
    return Case(changed(ATTENTION, (FILL, line)), ADDITIVE)


WRONG = {
    "floats as booleans, inverted": form("scores = scores.masked_fill(mask[:, None] == 0, -1e9)"
                                         " if mask.is_floating_point() else " + FILL[9:]),
    "floats multiplied": form("scores = scores * mask[:, None] if mask.is_floating_point() else "
                              + FILL[9:]),
    "floats ignored": form("scores = scores if mask.is_floating_point() else " + FILL[9:]),
    "only -inf is understood": form("scores = scores.masked_fill(mask[:, None] == -torch.inf, "
                                    "-torch.inf) if mask.is_floating_point() else " + FILL[9:]),
}  # fmt: skip
RIGHT = {
    "added or filled": form(BOTH),
    "made into floats": form(MADE),
    "the kernel": Case(
        changed(
            KERNEL,
            (
                "None if mask is None else ~mask[:, None]",
                "mask if mask is None else (mask if mask.is_floating_point() else ~mask)[:, None]",
            ),
        ),
        ADDITIVE,
    ),
}
