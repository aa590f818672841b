"""Scores that grow or shrink with the width of a head."""

from sources import SCALED
from trial import ATTENTION, KERNEL, Case, changed

SCALE = "/ q.shape[-1] ** 0.5"


def by(scale):
    return Case(changed(ATTENTION, (SCALE, scale)), SCALED)


WRONG = {
    "no scale": by(""),
    "multiplied": by("* q.shape[-1] ** 0.5"),
    "the width of the model": by("/ D ** 0.5"),
    "twice": by("/ q.shape[-1]"),
    "the kernel's scale": Case(
        changed(KERNEL, ("attn_mask=keep", "attn_mask=keep, scale=1.0")), SCALED
    ),
}
RIGHT = {
    "divided": by(SCALE),
    "the queries scaled": Case(
        changed(ATTENTION, (SCALE, ""), ("q @ k.mT", "(q * q.shape[-1] ** -0.5) @ k.mT")), SCALED
    ),
    "both sides by the fourth root": Case(
        changed(ATTENTION, (SCALE, ""),
                ("q @ k.mT", "(q * q.shape[-1] ** -0.25) @ (k * q.shape[-1] ** -0.25).mT")),
        SCALED,
    ),
    "the kernel": Case(KERNEL, SCALED),
}  # fmt: skip
