"""Uninitialised memory is never read.

`torch.empty` returns uninitialised memory: often zeros, at other times NaN or the values of another
model. A parameter that is not initialised trains only by luck.

Wrong: `torch.empty(S, S).triu(1)` as a mask; `nn.Parameter(torch.empty(D, D))` without an
initialisation after it; `torch.Tensor(M, D)` for a table of which half the columns are filled in.
Right: `torch.zeros`, `torch.full`, or `torch.empty` where every value is written before it is read.

Another instance is built and called with uninitialised memory filled with NaN, the largest integer
or either boolean: its output must be the same. Parameters are checked as the constructor left them.
"""

from itertools import cycle

from attnlab.checks.base import Failure, Probe, Tier, check
from attnlab.checks.shared.compare import far, first_failure, first_index, mask_kinds
from attnlab.probe.answers import Inputs, Tensor

BEGUN = (
    "Initialise it in the constructor, for example with nn.init.xavier_uniform_: torch.empty "
    "does not."
)
ALLOCATE = (
    *("empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "resize_"),
    *("Tensor", "FloatTensor", "LongTensor", "BoolTensor", "skip_init", "to_empty"),
)
SHOWN = 3  # names of parameters


@check(
    title="Uninitialised memory is not read",
    needs=("output",),
    tier=Tier.MEMORY,
    advice=(
        "Search for torch.empty, empty_like, new_empty and torch.Tensor(sizes): use torch.zeros."
    ),
    few=True,
)
def run(probe: Probe) -> Failure | None:
    samples = [probe.sample(mask) for mask in mask_kinds(probe.contract, "random")]
    found, begun = probe.uninitialised_memory([inputs for inputs, _ in samples])
    if begun:
        more = f" and {len(begun) - SHOWN} more" if len(begun) > SHOWN else ""
        verb = "are" if len(begun) > 1 else "is"
        return Failure(
            message=f"{', '.join(begun[:SHOWN])}{more} {verb} uninitialised: "
            "the values are whatever the memory held",
            advice=BEGUN,
        )
    return first_failure(
        _read(probe, inputs, usual, out)
        for (_, usual), (inputs, out) in zip(cycle(samples), found, strict=False)
    )


def _read(probe: Probe, inputs: Inputs, usual: Tensor, out: Tensor) -> Failure | None:
    bad, gap = out.isnan() & ~usual.isnan(), far(usual, out) & ~usual.isnan()
    if not gap.any().item():
        return None
    what, where = ("NaN", bad) if bad.any().item() else ("different", gap)
    if what == "different" and far(usual, probe.fresh_instance([inputs]).outputs[0]).any().item():
        return None  # it is another each time, whatever new memory holds
    return Failure(
        message="with uninitialised memory set to NaN or the largest integer, the output is "
        f"{what} at {first_index(where)}: uninitialised memory is read{_places(probe)}"
    )


def _places(probe: Probe) -> str:
    """The lines that allocate memory without writing to it."""
    lines = [str(line) for line in probe.call_lines(*ALLOCATE)]
    return f"; it is allocated on line{'s' * (len(lines) > 1)} {', '.join(lines)}" if lines else ""
