"""Garbage that a weight of zero does not keep out."""

from sources import SAFE
from trial import ATTENTION, KERNEL, Case, changed

LINE = "scores = q @ k.mT / q.shape[-1] ** 0.5"
GONE = "gone = None if mask is None else mask.all(1)[:, :, None]"
CLEAN = f"{GONE}\n        x = x if mask is None else x.masked_fill(gone, 0.0)"
START = "B, S, D = x.shape"
LAST = "return self.norm(self.out_proj(out)) + x"
BACK = "return self.norm(self.out_proj(out)) + given"
WRONG = {
    "an ordinary attention": Case(ATTENTION, SAFE),
    "the kernel": Case(KERNEL, SAFE),
    "keys cleaned and values not": Case(
        changed(ATTENTION, (LINE, f"k = k.nan_to_num(0.0, 0.0, 0.0)\n        {LINE}")), SAFE
    ),
}
RIGHT = {
    "positions that nobody sees are emptied": Case(
        changed(ATTENTION, (START, f"{START}\n        given = x\n        {CLEAN}"), (LAST, BACK)),
        SAFE,
        None,
    ),
    "keys and values cleaned": Case(
        changed(
            ATTENTION,
            (
                LINE,
                "k, v = k.nan_to_num(0.0, 0.0, 0.0), v.nan_to_num(0.0, 0.0, 0.0)\n        " + LINE,
            ),
        ),
        SAFE,
    ),
}
