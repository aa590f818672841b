"""Queries that meet each other, and contexts that do not arrive."""

from dataclasses import replace

from sources import ACROSS, CROSS
from trial import Case, changed

UNIT = "CrossAttention"
SCORES = "scores = q @ k.mT / q.shape[-1] ** 0.5"
LAST = "return self.out_proj(heads.transpose(1, 2).flatten(2))"
WRONG = {
    "the mean query": Case(
        changed(CROSS, (SCORES, f"q = q - q.mean(2, keepdim=True)\n        {SCORES}")), ACROSS, UNIT
    ),
    "a mean over the outputs": Case(
        changed(CROSS, ("heads = weights @ v", ("heads = weights @ v\n"
                "        heads = heads + heads.mean(2, keepdim=True)"))), ACROSS, UNIT
    ),
    "the context by its place": Case(
        changed(CROSS, (SCORES, f"{SCORES} + torch.arange(k.shape[2])")), ACROSS, UNIT
    ),
}  # fmt: skip
RIGHT = {
    "by hand": Case(CROSS, ACROSS, UNIT),
    "the kernel": Case(
        changed(
            CROSS,
            ("import nn\n", ("import nn\nfrom torch.nn.functional import "
             "scaled_dot_product_attention as kernel\n")),
            ("heads = weights @ v", "heads = kernel(q, k, v, None if mask is None else ~mask)"),
        ),
        ACROSS,
        UNIT,
    ),
    "a decoder layer, causal among its queries": Case(
        changed(CROSS, ("q = self.q_proj(x)", "x = x.cumsum(1)\n        q = self.q_proj(x)")),
        replace(ACROSS, promises=("causal",)),
        None,
    ),
    "a residual": Case(changed(CROSS, (LAST, f"{LAST} + x")), ACROSS, None),
}  # fmt: skip
