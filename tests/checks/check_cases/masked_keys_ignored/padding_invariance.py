"""Modules that count positions which are not there."""

from sources import ACROSS, CROSS, GROUPED, SHARED
from trial import ATTENTION, KERNEL, Case, changed

LAST = "return self.norm(self.out_proj(out)) + x"
WRONG = {
    "the length as a scale": Case(changed(ATTENTION, (LAST, f"{LAST} * S / 9"))),
    "the length as a temperature": Case(
        changed(ATTENTION, ("q.shape[-1] ** 0.5", "q.shape[-1] ** 0.5 * (1 + S)"))
    ),
    "the share of masked keys": Case(
        changed(
            ATTENTION, (LAST, f"{LAST} + (0 if mask is None else mask.float().mean((1, 2), True))")
        )
    ),
}
RIGHT = {
    "by hand": Case(ATTENTION),
    "the kernel": Case(KERNEL),
    "a context": Case(CROSS, ACROSS, "CrossAttention"),
    "shared heads": Case(GROUPED, SHARED, "GroupedQueryAttention"),
}
