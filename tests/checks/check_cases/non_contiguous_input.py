"""Code that reads memory where it should read a tensor."""

from trial import ATTENTION, FIRST, KERNEL, Case, changed

WRONG = {
    "a view of the argument": Case(
        changed(ATTENTION, (FIRST, f"{FIRST}\n        x = x.view(B * S, D).view(B, S, D)"))
    ),
    "memory read as it lies": Case(
        changed(ATTENTION, (FIRST, f"{FIRST}\n        x = x.as_strided(x.shape, (S * D, D, 1))"))
    ),
    "a view of the mask": Case(
        changed(ATTENTION, ("mask[:, None]", "mask.view(B, 1, -1).view(B, 1, S, S)"))
    ),
}
RIGHT = {
    "by hand": Case(ATTENTION),
    "the kernel": Case(KERNEL),
    "reshaped": Case(
        changed(ATTENTION, (FIRST, f"{FIRST}\n        x = x.reshape(B * S, D).view(B, S, D)"))
    ),
}
