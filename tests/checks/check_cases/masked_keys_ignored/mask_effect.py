"""Masks that are honoured in part."""

from trial import ATTENTION, KERNEL, Case, changed

MASK = "mask[:, None]"
ADDED = "torch.zeros(mask.shape).masked_fill(mask, -torch.inf)"
WRONG = {
    "the first key is always seen": Case(
        changed(ATTENTION, (MASK, "F.pad(mask[..., 1:], (1, 0))[:, None]"))
    ),
    "only the future is hidden": Case(changed(ATTENTION, (MASK, f"{MASK}.triu(1)"))),
}
RIGHT = {
    "minus infinity": Case(ATTENTION),
    "the kernel": Case(KERNEL),
    "added": Case(
        changed(
            ATTENTION, (f"scores.masked_fill({MASK}, -torch.inf)", f"scores + ({ADDED})[:, None]")
        )
    ),
}
