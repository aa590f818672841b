"""Weights that do not sum to 1."""

from trial import ATTENTION, KERNEL, Case, changed

SOFTMAX = "scores.softmax(-1)"
WRONG = {
    "a sigmoid": Case(changed(ATTENTION, (SOFTMAX, "scores.sigmoid()"))),
    "scores without a softmax": Case(changed(ATTENTION, (SOFTMAX, "scores.relu().clamp(max=1)"))),
    "small weights cut off": Case(
        changed(ATTENTION, ("weights @ v", "(weights * (weights > 0.3)) @ v")), reference=None
    ),
}
RIGHT = {
    "a softmax": Case(ATTENTION),
    "the kernel": Case(KERNEL),
    "another temperature": Case(
        changed(ATTENTION, (SOFTMAX, "(scores * 3).softmax(-1)")), reference=None
    ),
    "the few largest, made to sum to 1": Case(
        changed(
            ATTENTION,
            (SOFTMAX, "scores.softmax(-1) * (scores > -5)"),
            ("weights @ v", "weights / weights.sum(-1, keepdim=True).clamp(min=1e-9) @ v"),
        ),
        reference=None,
    ),
}
