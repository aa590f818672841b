"""Code that falls over at the smallest and largest sizes."""

from dataclasses import replace

from scenes import LEARNED, ROWS, case
from trial import ATTENTION, KERNEL, LAST, SELF, Case, changed

KEPT = replace(SELF, vary=("B",), sizes={"B": 3, "S": 4, "D": 8, "H": 2})
LIMIT = replace(ROWS, sizes={"B": 2, "S": 4, "D": 8, "M": 60})
ALONE = "x.shape[0] == 1"
WRONG = {
    "the longest is too long": case(LEARNED, LIMIT, ("x.shape[1] > len", "x.shape[1] >= len")),
    "one sample is another thing": Case(
        changed(ATTENTION, (LAST, f"{LAST} + ({ALONE}) * x.mean(1, keepdim=True)")), reference=None
    ),
}
RIGHT = {
    "by hand": Case(ATTENTION),
    "the kernel": Case(KERNEL),
    "learned rows": case(LEARNED, LIMIT),
}
