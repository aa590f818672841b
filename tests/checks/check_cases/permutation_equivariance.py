"""Modules that know where a position stands, and were not meant to."""

from trial import ATTENTION, KERNEL, Case, changed

WRONG = {
    "a bias by position": Case(
        changed(ATTENTION, ("** 0.5", "** 0.5 + torch.arange(S) / S")),
    ),
    "a bias by distance": Case(
        changed(
            ATTENTION, ("** 0.5", "** 0.5 - (torch.arange(S)[:, None] - torch.arange(S)).abs()")
        )
    ),
    "every other query turned": Case(
        changed(ATTENTION, ("q @ k.mT", "(q * (1 - torch.arange(S) % 2 * 2)[:, None]) @ k.mT"))
    ),
}
RIGHT = {"by hand": Case(ATTENTION), "the kernel": Case(KERNEL)}
