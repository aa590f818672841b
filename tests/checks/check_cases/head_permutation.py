"""Heads that are told apart by their place."""

from sources import GROUPED, SHARED
from trial import ATTENTION, KERNEL, Case, changed

MERGE = "out = heads.transpose(1, 2).reshape(B, S, D)"
WRONG = {
    "features dealt out in turn": Case(
        changed(ATTENTION, (MERGE, "out = heads.permute(0, 2, 3, 1).reshape(B, S, D)"))
    ),
    "the first head's values": Case(changed(ATTENTION, ("weights @ v", "weights @ v[:, :1]"))),
    "a scale by the place": Case(
        changed(ATTENTION, ("heads = weights @ v",
                "heads = weights @ v * torch.arange(1, self.H + 1)[:, None, None]"))
    ),
}  # fmt: skip
RIGHT = {
    "by hand": Case(ATTENTION),
    "the kernel": Case(KERNEL),
    "shared heads": Case(GROUPED, SHARED, "GroupedQueryAttention"),
}
