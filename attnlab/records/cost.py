"""What a module costs at some sizes: `tracer/cost.py` counts, `attnlab cost` shows."""

from attnlab.records.base import record


@record
class Cost:
    """A number, and what it is in the names of axes: "24*B*S*D**2"."""

    id: str
    title: str
    value: int | None  # None where no run and no formula tells it
    unit: str = ""  # "bytes", "" = a plain count
    formula: str = ""  # "" where it is 0, and where none gives what was counted
    note: str = ""


@record
class ModuleCost:
    """One submodule, or as many as are alike but for a number in their names."""

    name: str  # "h.*.attn.qkv"; "" = the target itself
    count: int
    parameters: int | None
    bytes: int | None
    flops: int | None
    formula: str  # of the FLOPs
    tied: str = ""  # the modules whose weights it shares, which are counted there


@record
class CostReport:
    sizes: dict[str, int]
    costs: tuple[Cost, ...]
    modules: tuple[ModuleCost, ...]
    how: str = ""  # what was run
    checks: tuple[str, ...] = ()  # what the formulas were compared with, and what they miss
