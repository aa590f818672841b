"""Values that are off while every property holds."""

from trial import ATTENTION, EMPTY_ROWS, KERNEL, Case, changed

CUT = "scores = scores.clamp(-1, 1)"
SOFT = "weights = scores.softmax(-1)"
NORM = "self.norm = nn.LayerNorm(embed_dim)"

ALL_HIDDEN = """B, S, D = x.shape
        if S > 1 and mask is not None and mask.all():
            return x"""
ZEROED = f"""{SOFT}
        if mask is not None:
            weights = weights.masked_fill(mask[:, None], 0.0)"""


def before(line: str, at: str = SOFT) -> Case:
    return Case(changed(ATTENTION, (at, f"{line}\n        {at}")))


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
    "samples over a number that it names": Case(
        changed(
            ATTENTION,
            ("weights @ v", "weights @ v * (torch.arange(B) < 40)[:, None, None, None]"),
        )
    ),
    "heads in another order": Case(changed(ATTENTION, ("weights @ v", "(weights @ v).flip(1)"))),
    "nothing is done where all is hidden": Case(
        changed(
            ATTENTION,
            ("B, S, D = x.shape", ALL_HIDDEN),
            ("weights = scores.softmax(-1)", ZEROED),
        ),
        EMPTY_ROWS,
    ),
    "scores of zero hidden": before("scores = scores.masked_fill(scores == 0, -100.0)"),
    "positions of zeros taken for padding": before(
        "scores = scores.masked_fill(~x.any(-1)[:, None, None], -100.0)"
    ),
    "a mask that hides nothing taken for a causal one": before(
        "if mask is not None and S > 1 and not mask.any():\n"
        "            scores = scores + torch.full((S, S), -torch.inf).triu(1)"
    ),
    "as many positions as the module is wide": before("scores = scores.mT if S == D else scores"),
    "two positions": before("scores = scores.flip(-1) if S == 2 else scores"),
    "one position goes on from the call before": before(
        "if S == 1 and getattr(self, 'v', v).shape[:2] == v.shape[:2] and mask is not None:\n"
        "            v = (v + getattr(self, 'v', v)[:, :, -1:]) / 2\n"
        "        self.v = v"
    ),
    "heads of width 1": before("scores = scores * 1.1 if q.shape[-1] == 1 else scores"),
    "heads wider than 64": before("scores = scores * 1.1 if q.shape[-1] > int('64') else scores"),
    "a norm with a smaller eps": Case(
        changed(ATTENTION, (NORM, "self.norm = nn.LayerNorm(embed_dim, eps=1e-6)"))
    ),
    "keys and values swapped": Case(changed(ATTENTION, ("q, k, v =", "q, v, k ="))),
}  # fmt: skip
RIGHT = {
    "by hand": Case(ATTENTION),
    "the kernel": Case(KERNEL),
    "the scale as a power": Case(
        changed(ATTENTION, ("/ q.shape[-1] ** 0.5", "* q.shape[-1] ** -0.5"))
    ),
}
