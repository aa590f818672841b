"""Writing into what the caller passed."""

from trial import ATTENTION, FIRST, KERNEL, LAST, Case, changed

KEPT = f"""out = {LAST[7:]}
        if getattr(self, "kept", out[:0]).shape != out.shape:
            self.kept = torch.empty_like(out)
        self.kept = self.kept.detach().copy_(out)
        return self.kept"""
LATE = f"out = {LAST[7:]}\n        if S > 30:\n            x.data.zero_()\n        return out"
WRONG = {
    "x of long sequences, behind autograd's back": Case(changed(ATTENTION, (LAST, LATE))),
    "the same values once more, at one length": Case(
        changed(ATTENTION, (FIRST, f"{FIRST}\n        x = x.mul_(1) if S == 37 else x"))
    ),
    "an output in memory that the next call takes": Case(changed(ATTENTION, (LAST, KEPT))),
    "x in place": Case(changed(ATTENTION, (FIRST, f"x += 0.1\n        {FIRST}"))),
    "one value of x": Case(changed(ATTENTION, (FIRST, f"x[0, 0, 0] = 1.0\n        {FIRST}"))),
    "a view of x": Case(changed(ATTENTION, (FIRST, f"x.transpose(0, 1).mul_(2)\n        {FIRST}"))),
    "x learns": Case(changed(ATTENTION, (FIRST, f"x.requires_grad_()\n        {FIRST}"))),
    "the mask": Case(
        changed(
            ATTENTION,
            ("if mask is not None:", "if mask is not None:\n            mask[..., 0] = False"),
        )
    ),
    "x reshaped for good": Case(
        changed(
            ATTENTION,
            (
                FIRST,
                f"{FIRST}\n        y = x.clone(); x.data = x.flatten(1); x = y",
            ),
        )
    ),
}
RIGHT = {
    "a copy in place": Case(changed(ATTENTION, (FIRST, f"x = x.clone().add_(0)\n        {FIRST}"))),
    "the kernel": Case(KERNEL),
    "a result in place": Case(
        changed(ATTENTION, ("scores = scores.masked_fill(", "scores.masked_fill_("))
    ),
}
