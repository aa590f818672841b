"""Masks that forbid too little of the future."""

from dataclasses import replace

from trial import ATTENTION, KERNEL, SELF, Case, changed

OWN = replace(SELF, inputs=SELF.inputs[:1], promises=("causal",))
HEAD = "forward(self, x, mask=None):"
TRIU = "torch.ones(1, x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu({})"
FUTURE = changed(ATTENTION, (HEAD, f"forward(self, x):\n        mask = {TRIU}"))
WRONG = {
    "one too many": Case(FUTURE.replace("{}", "2"), OWN, None),
    "the last but one sees the last": Case(
        FUTURE.replace("{}", "1)\n        mask[:, -2:-1, -1].zero_("), OWN, None
    ),
    "none at all": Case(FUTURE.replace("{}", "99"), OWN, None),
    "the given mask moved by one": Case(
        changed(ATTENTION, ("mask[:, None]", "mask[:, None].roll(1, -1)"))
    ),
    "the mask after the softmax": Case(
        changed(
            ATTENTION,
            ("if mask is not None:", "weights = scores.softmax(-1)\n        if mask is not None:"),
            ("scores = scores.masked_fill(mask[:, None], -torch.inf)",
             "weights = weights.masked_fill(mask[:, None], 0.0)"),
            ("        weights = scores.softmax(-1)\n        heads", "        heads"),
        )
    ),
    "the future's mean in a norm": Case(
        changed(ATTENTION, ("+ x", "+ x - x.mean(1, keepdim=True)"))
    ),
}  # fmt: skip
RIGHT = {
    "its own triangle": Case(FUTURE.replace("{}", "1"), OWN, None),
    "the kernel's flag": Case(
        changed(KERNEL, (HEAD, "forward(self, x):\n        mask = None"),
                ("attn_mask=keep", "is_causal=True")),
        OWN,
        None,
    ),
    "the given mask": Case(ATTENTION),
}  # fmt: skip
