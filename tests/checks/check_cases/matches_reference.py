"""Values that are off while every property holds."""

from trial import ATTENTION, KERNEL, Case, changed

CUT = "scores = scores.clamp(-1, 1)"
WRONG = {
    "too sharp": Case(changed(ATTENTION, ("/ q.shape[-1] ** 0.5", "* q.shape[-1] ** 0.5"))),
    "scaled by the whole width": Case(changed(ATTENTION, ("/ q.shape[-1] ** 0.5", "/ D**0.5"))),
    "off by one in a hundred": Case(changed(ATTENTION, ("** 0.5", "** 0.51"))),
    "another scale under a mask": Case(
        changed(ATTENTION, ("scores = scores.masked_fill(", "scores = (scores * 1.1).masked_fill("))
    ),
    "another scale without a mask": Case(
        changed(
            ATTENTION,
            ("weights = ", "scores *= 1.1 if mask is None else 1\n        weights = "),
        )
    ),
    "large scores cut off": Case(
        changed(
            ATTENTION, ("if mask is not None:", f"{CUT}\n        if mask is not None:")
        )
    ),
    "no residual": Case(changed(ATTENTION, ("self.norm(self.out_proj(out)) + x",
                                            "self.norm(self.out_proj(out))"))),
    "norm after the residual": Case(changed(ATTENTION, ("self.norm(self.out_proj(out)) + x",
                                                        "self.norm(self.out_proj(out) + x)"))),
    "one head is not scaled": Case(
        changed(ATTENTION, ("/ q.shape[-1] ** 0.5", "/ (q.shape[-1] ** 0.5 if self.H > 1 else 1)"))
    ),
    "wide heads are scaled as narrow ones": Case(
        changed(ATTENTION, ("/ q.shape[-1] ** 0.5", "/ min(q.shape[-1], 3 * 7) ** 0.5"))
    ),
    "samples after the ninth": Case(
        changed(
            ATTENTION,
            ("weights @ v", "weights @ v * (torch.arange(B) < 9)[:, None, None, None]"),
        )
    ),
    "lengths over a number that it names": Case(
        changed(ATTENTION, ("weights @ v", "weights[..., :100] @ v[..., :100, :]"))
    ),
    "heads in another order": Case(changed(ATTENTION, ("weights @ v", "(weights @ v).flip(1)"))),
    "keys and values swapped": Case(changed(ATTENTION, ("q, k, v =", "q, v, k ="))),
}  # fmt: skip
RIGHT = {
    "by hand": Case(ATTENTION),
    "the kernel": Case(KERNEL),
    "the scale as a power": Case(
        changed(ATTENTION, ("/ q.shape[-1] ** 0.5", "* q.shape[-1] ** -0.5"))
    ),
}
