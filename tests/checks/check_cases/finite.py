"""Values that overflow, and masks that make NaN."""

from trial import ATTENTION, KERNEL, Case, changed

SOFTMAX = "scores.softmax(-1)"
POWERS = "powers = (scores - scores.amax(-1, keepdim=True)).exp()"
FILL = "scores.masked_fill(mask[:, None], -torch.inf)"
WRONG = {
    "a softmax that overflows": Case(
        changed(ATTENTION, (SOFTMAX, "scores.exp() / scores.exp().sum(-1, keepdim=True)"))
    ),
    "zero times infinity": Case(changed(ATTENTION, (FILL, "scores + mask[:, None] * -torch.inf"))),
    "a division by nothing": Case(
        changed(ATTENTION, ("heads = weights @ v", "heads = weights @ v / (x - x).sum()"))
    ),
}
RIGHT = {
    "the largest score subtracted": Case(
        changed(
            ATTENTION,
            ("weights = ", f"{POWERS}\n        weights = "),
            (SOFTMAX, "powers / powers.sum(-1, keepdim=True)"),
        )
    ),
    "the kernel": Case(KERNEL),
    "the smallest number instead of infinity": Case(
        changed(ATTENTION, (FILL, "scores.masked_fill(mask[:, None], torch.finfo(x.dtype).min)"))
    ),
}  # fmt: skip
