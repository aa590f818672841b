"""Modules that are others while they are trained."""

from trial import ATTENTION, KERNEL, Case, changed

MASKED = "if mask is not None:"
SOFTMAX = "weights = scores.softmax(-1)"
DROPPED = "weights = F.dropout(scores.softmax(-1), 0.1, self.training)"
DRIFTS = "self.drift += 0.1 * self.training"
WRONG = {
    "no mask in train mode": Case(
        changed(ATTENTION, (MASKED, "if mask is not None and not self.training:"))
    ),
    "a dropout that nobody asked for": Case(changed(ATTENTION, (SOFTMAX, DROPPED))),
    "only without a mask": Case(
        changed(
            ATTENTION,
            (SOFTMAX, f"{SOFTMAX} * (0.9 if mask is None and self.training else 1)"),
        )
    ),
    "what training leaves behind": Case(
        changed(
            ATTENTION,
            ("self.H = num_heads", "self.H, self.drift = num_heads, 0.0"),
            (
                SOFTMAX,
                f"{SOFTMAX} * (1 if self.training else 1 - self.drift)\n        {DRIFTS}",
            ),
        )
    ),
}
RIGHT = {
    "by hand": Case(ATTENTION),
    "the kernel": Case(KERNEL),
    "another way of the same in train mode": Case(
        changed(ATTENTION, (SOFTMAX, f"{SOFTMAX} if self.training else torch.softmax(scores, 3)"))
    ),
}
