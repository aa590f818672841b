"""Modules that run in float32 alone."""

from dataclasses import replace

from scenes import ROPE, TURNED, case
from trial import ATTENTION, EMPTY_ROWS, KERNEL, SELF, Case, changed

TYPES = replace(SELF, dtypes=("float64", "bfloat16", "float16"))
TURNS = replace(TURNED, dtypes=("float64", "bfloat16", "float16"))
FUTURE = "x.new_ones(1, x.shape[1], x.shape[1]).triu(1).bool()"
FILL = "scores.masked_fill(mask[:, None], -torch.inf)"
WRONG = {
    "an additive mask in float32": Case(
        changed(
            ATTENTION,
            (FILL, "scores + torch.zeros(mask.shape).masked_fill(mask, -torch.inf)[:, None]"),
        ),
        TYPES,
    ),
    "float32 comes out": Case(changed(ATTENTION, ("+ x", "+ x.float()")), TYPES),
    "too large for float16": Case(
        changed(ATTENTION, (FILL, "scores.masked_fill(mask[:, None], -1e9)")), TYPES
    ),
    "a fill that is not the lowest of all in float16": Case(
        changed(
            ATTENTION,
            (
                FILL,
                "scores.masked_fill(mask[:, None], -1e3 if x.dtype.itemsize < 4 else -torch.inf)",
            ),
        ),
        TYPES,
    ),
    "a kernel whose mask stays in float32, from 16 keys on": Case(
        changed(
            KERNEL,
            (
                "~mask[:, None]",
                "torch.zeros(mask.shape).masked_fill(mask, -torch.inf)[:, None]",
            ),
        ),
        replace(TYPES, dtypes=("float64",)),
    ),
    "a fill that leaves a billionth beside a large residual": Case(
        changed(ATTENTION, (FILL, "scores.tanh().masked_fill(mask[:, None], -20.0)")), TYPES, None
    ),
    "a future that weighs a billionth": Case(
        changed(
            ATTENTION,
            ("forward(self, x, mask=None):", f"forward(self, x):\n        mask = {FUTURE}"),
            (FILL, "scores.tanh().masked_fill(mask[:, None], -20.0)"),
        ),
        replace(TYPES, inputs=SELF.inputs[:1], promises=("causal",)),
        None,
    ),
    "empty rows that float16 does not see": Case(
        changed(
            ATTENTION,
            (FILL, "scores.masked_fill(mask[:, None], -1e38 if x.dtype.itemsize > 2 else -1e4)"),
            (
                "weights = scores.softmax(-1)",
                "weights = scores.softmax(-1) * (scores.amax(-1, keepdim=True) > -3e4)",
            ),
        ),
        replace(EMPTY_ROWS, dtypes=("float16",)),
    ),
}
RIGHT = {
    "by hand": Case(ATTENTION, TYPES),
    "the kernel": Case(KERNEL, TYPES),
    "softmax in float32": Case(
        changed(ATTENTION, ("scores.softmax(-1)", "scores.float().softmax(-1).to(x.dtype)")), TYPES
    ),
    "a function that a copy shares": Case(
        changed(
            ATTENTION,
            (
                "self.H = num_heads",
                "self.H = num_heads\n        self.out = lambda t: self.out_proj(t)",
            ),
            ("self.out_proj(out)", "self.out(out)"),
        ),
        TYPES,
    ),
    "turned": case(ROPE, TURNS),
}
