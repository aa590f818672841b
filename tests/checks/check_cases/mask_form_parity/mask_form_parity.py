"""Modules that take booleans and floats, and do not mean the same by them."""

from dataclasses import replace

from sources import ADDITIVE
from trial import ATTENTION, KERNEL, Case, changed

FILL = "scores = scores.masked_fill(mask[:, None], -torch.inf)"
BOTH = """add = mask.is_floating_point()
            scores = scores + mask[:, None] if add else scores.masked_fill(mask[:, None], -1e30)"""
MADE = (
    "scores = scores + (mask if mask.is_floating_point() else "
    "torch.zeros(mask.shape).masked_fill(mask, -torch.inf))[:, None]"
)


TYPES = replace(ADDITIVE, dtypes=("bfloat16",))


def form(line, contract=ADDITIVE):
    return Case(changed(ATTENTION, (FILL, line)), contract)


WRONG = {
    "floats as booleans, inverted": form("scores = scores.masked_fill(mask[:, None] == 0, -1e9)"
                                         " if mask.is_floating_point() else " + FILL[9:]),
    "floats multiplied": form("scores = scores * mask[:, None] if mask.is_floating_point() else "
                              + FILL[9:]),
    "floats ignored": form("scores = scores if mask.is_floating_point() else " + FILL[9:]),
    "floats ignored in train mode": form(
        BOTH.replace("scores + mask", "scores + (not self.training) * mask.clamp(min=-1e30)")
    ),
    "floats cut the gradient": form(BOTH.replace("scores + mask", "scores.detach() + mask")),
    "floats in float32 alone": form(
        BOTH.replace("scores + mask", "scores + (mask if x.dtype == torch.float32 else mask * 0)"),
        TYPES,
    ),
    "only -inf is understood": form("scores = scores.masked_fill(mask[:, None] == -torch.inf, "
                                    "-torch.inf) if mask.is_floating_point() else " + FILL[9:]),
    "every bias hides": form("scores = scores.masked_fill(mask[:, None].bool(), -torch.inf)"),
    "biases are forgotten": form("scores = scores.masked_fill(mask[:, None] < -100, -torch.inf) "
                                 "if mask.is_floating_point() else " + FILL[9:]),
}  # fmt: skip
RIGHT = {
    "added or filled": form(BOTH),
    "in another type": form(BOTH, TYPES),
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
