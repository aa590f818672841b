"""Gradients that differ by more than float64 rounds, and by less than float32 does."""

from dataclasses import replace

from trial import ATTENTION, KERNEL, LAST, SELF, Case, changed

FLOAT64 = replace(SELF, dtypes=("float64",))

WRONG = {
    "a little too much": Case(
        changed(ATTENTION, (LAST, f"{LAST} + 1e-4 * (x - x.detach())")), FLOAT64
    ),
}
RIGHT = {"attention": Case(ATTENTION, FLOAT64), "a fused kernel": Case(KERNEL, FLOAT64)}
