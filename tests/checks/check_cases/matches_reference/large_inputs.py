"""Numbers that scores are filled with or kept to, which only large scores reach."""

from trial import ATTENTION, KERNEL, Case, changed

FILL = "masked_fill(mask[:, None], -torch.inf)"
SOFTMAX = "weights = scores.softmax(-1)"
LOW = "low = -1e3 if mask is None else -torch.inf"
TOP = "top = scores.amax(-1, keepdim=True)"
POWER = f"""{TOP}
        power = (scores - top).exp()
        weights = power / power.sum(-1, keepdim=True)"""
WRONG = {
    "scores kept between two numbers": Case(
        changed(
            ATTENTION,
            ("/ q.shape[-1] ** 0.5", "/ q.shape[-1] ** 0.5).clamp(-50, 50)"),
            ("scores = q", "scores = (q"),
        )
    ),
    "scores kept below a number": Case(
        changed(ATTENTION, (SOFTMAX, "weights = scores.clamp(max=30.0).softmax(-1)"))
    ),
    "without a mask alone": Case(
        changed(
            ATTENTION,
            (SOFTMAX, f"{LOW}\n        scores = scores.clamp(min=low)\n        {SOFTMAX}"),
        )
    ),
    "a maximum that is never below zero": Case(
        changed(
            changed(ATTENTION, (SOFTMAX, POWER)),
            (TOP, f"{TOP}.clamp(min=0)"),
            ("keepdim=True)\n        heads", "keepdim=True).clamp(min=1e-30)\n        heads"),
        )
    ),
    "a fill that is usual, and not low enough": Case(changed(ATTENTION, ("-torch.inf", "-1e4"))),
}
RIGHT = {
    "a fill that no score of this size reaches": Case(changed(ATTENTION, ("-torch.inf", "-1e9"))),
    "by hand": Case(ATTENTION),
    "the kernel": Case(KERNEL),
    "the least number of the dtype": Case(
        changed(ATTENTION, (FILL, "masked_fill(mask[:, None], torch.finfo(scores.dtype).min)"))
    ),
    "the maximum taken off first": Case(changed(ATTENTION, (SOFTMAX, POWER))),
}
