"""Masks that forbid too much."""

from dataclasses import replace

from sources import ACROSS, CROSS
from trial import ATTENTION, KERNEL, SELF, Case, changed

FILL = "scores.masked_fill(mask[:, None], -torch.inf)"
FREE = replace(SELF, promises=("averaging", "local"))
CAUSAL = replace(SELF, inputs=SELF.inputs[:1], promises=("causal",))
HEAD = "forward(self, x, mask=None):"
TORCH = "torch.ones_like(mask)"
TRIU = "mask = torch.ones(1, x.shape[1], x.shape[1], dtype=torch.bool).triu(1)"
OWN = changed(ATTENTION, (HEAD, f"forward(self, x):\n        {TRIU}"))
WRONG = {
    "the first key hidden": Case(
        changed(ATTENTION, (FILL, ("scores.masked_fill(mask[:, None], -torch.inf)\n"
                "            scores[..., 0] = scores[..., 0].where(mask[:, None].all(-1), -1e9)")))
    ),
    "a window of three": Case(
        OWN.replace(TRIU, f"{TRIU}\n        mask = mask | {TORCH}.tril(-3)"), CAUSAL, None
    ),
    "the last key cut off": Case(
        changed(ATTENTION, ("weights = scores.softmax(-1)",
                            "n = max(S - 1, 1)\n        weights = scores[..., :n].softmax(-1)"),
                           ("weights @ v", "weights @ v[..., :n, :]")),
        replace(SELF, inputs=SELF.inputs[:1]),
    ),
}  # fmt: skip
RIGHT = {
    "by hand": Case(ATTENTION),
    "the kernel": Case(KERNEL),
    "its own triangle": Case(OWN, CAUSAL, None),
    "a context": Case(CROSS, ACROSS, "CrossAttention"),
}
