"""Samples that read each other."""

from dataclasses import replace

from trial import ATTENTION, FIRST, KERNEL, SELF, Case, changed

MERGE = "heads.transpose(1, 2).reshape(B, S, D)"
WRONG = {
    "the mean of the batch": Case(
        changed(ATTENTION, (FIRST, f"{FIRST}\n        x = x - x.mean(0)"))
    ),
    "batch and positions mixed in a reshape": Case(
        changed(ATTENTION, (MERGE, "heads.reshape(S, B, D).transpose(0, 1)"))
    ),
    "a little of the last sample": Case(
        changed(ATTENTION, ("weights @ v", "weights @ (v + 0.1 * v[-1:])"))
    ),
    "the first sample's mask for all": Case(
        changed(ATTENTION, ("mask[:, None]", "mask[:1, None]")), replace(SELF, promises=())
    ),
    "positions along the batch": Case(
        changed(ATTENTION, (FIRST, f"{FIRST}\n        x = x + torch.arange(B)[:, None, None]"))
    ),
    "the next sample's values": Case(changed(ATTENTION, ("weights @ v", "weights @ v.roll(1, 0)"))),
}
RIGHT = {
    "by hand": Case(ATTENTION),
    "the kernel": Case(KERNEL),
    "one sample at a time": Case(
        changed(ATTENTION, ("weights @ v", "torch.stack([a @ b for a, b in zip(weights, v)])"))
    ),
}
