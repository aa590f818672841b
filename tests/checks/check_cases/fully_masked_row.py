"""Queries that may attend to nothing."""

from trial import ATTENTION, EMPTY_ROWS, KERNEL, Case, changed

FILL = "scores.masked_fill(mask[:, None], -torch.inf)"
LINE = "            scores = " + FILL
WEIGHTS = "weights = scores.softmax(-1)"
EMPTY = "mask.all(-1, keepdim=True)[:, None]"
NEVER = "torch.tensor(False)"
NONE = "if mask is None else "
ZEROED = f"{WEIGHTS} {NONE}scores.softmax(-1).masked_fill({EMPTY}, 0.0)"
WRONG = {
    "NaN": Case(ATTENTION, EMPTY_ROWS),
    "equal weights": Case(
        changed(ATTENTION, (FILL, "scores.masked_fill(mask[:, None], -1e30)")), EMPTY_ROWS
    ),
    "scores cleaned before the softmax": Case(
        changed(
            ATTENTION, (LINE, f"{LINE}\n            scores = scores.masked_fill({EMPTY}, 0.0)")
        ),
        EMPTY_ROWS,
    ),
    "NaN in the gradients": Case(
        changed(
            ATTENTION,
            (FILL, "scores + torch.zeros(mask.shape).masked_fill(mask, -torch.inf)[:, None]"),
            (WEIGHTS, f"{WEIGHTS}.nan_to_num(0.0)"),
        ),
        EMPTY_ROWS,
    ),
}
RIGHT = {
    "weights zeroed": Case(changed(ATTENTION, (WEIGHTS, ZEROED)), EMPTY_ROWS),
    "a mask with room, then zeros": Case(
        changed(
            ATTENTION,
            (FILL, f"scores.masked_fill(mask[:, None] & ~{EMPTY}, -torch.inf)"),
            (WEIGHTS, ZEROED),
        ),
        EMPTY_ROWS,
    ),
    "the kernel, then zeros": Case(
        changed(
            KERNEL,
            ("keep = None if", f"empty = {NEVER} {NONE}{EMPTY}\n        keep = None if"),
            ("~mask[:, None]", "~mask[:, None] | empty"),
            ("attn_mask=keep)", "attn_mask=keep).masked_fill(empty, 0.0)"),
        ),
        EMPTY_ROWS,
    ),
}  # fmt: skip
