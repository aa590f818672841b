"""Arguments stand where the task says: by position, and optional ones can be left out.

Every other check names what it passes, and passes all of it.

Wrong: `def forward(self, x, mask)` where `mask=None` was asked for: whoever calls `m(x)` gets a
TypeError; `__init__(self, num_heads, embed_dim)`, which is built all the same with other sizes.
Right: the order and the defaults of the task; names of forward's arguments are free.

A module is built by position and called with each kind of mask, and with none at all.
"""

from attnlab.checks.base import Failure, Mask, Probe, far, first_index

TITLE = "Arguments stand where the task says"
NEEDS = ("output", "signature")
AFTER = ("output-shape", "finite", "deterministic-eval", "input-unchanged", "matches-reference")
ADVICE = "Compare the arguments of __init__ and forward with the task: their order, and defaults."
ONCE = True


def run(probe: Probe) -> Failure | None:
    kinds: tuple[Mask, ...] = ("random", "none")
    masked = any(i.role == "mask" for i in probe.contract.inputs)
    for mask in kinds if masked else kinds[:1]:
        inputs, named = probe.sample(mask)
        out = probe.stated(inputs)
        how = "with the mask left out" if mask == "none" else "by position"
        if out.shape != named.shape:
            return Failure(
                message=f"built by position and called {how}, it returns {tuple(out.shape)}; by "
                f"name {tuple(named.shape)}"
            )
        gap = far(named, out)
        if gap.any().item():
            return Failure(
                message=f"built by position and called {how}, it gives another output at "
                f"{first_index(gap)} than by name"
            )
    return None
