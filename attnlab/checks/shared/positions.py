"""What the checks of positions share: how to get at what a module says of each position.

Not a check. A module that returns a table says it outright; one that adds it says it for an input
of zeros; one that turns vectors says it by where a fixed vector comes to lie.
"""

import math

from attnlab.checks.base import Probe
from attnlab.probe.answers import Inputs, Tensor

DISTINCT = 1e-6  # of the largest value: rows that differ by less are the same row


def first(probe: Probe) -> str:
    """The name of the input that is moved to its positions."""
    return next(i.name for i in probe.contract.inputs if i.role == "data")


def plain_inputs(probe: Probe) -> Inputs:
    """Inputs in which no position differs from another: zeros, or for vectors to turn one vector.

    Tokens are all the same one."""
    inputs = probe.draw("none")
    name, position = first(probe), probe.contract.position
    value = inputs[name]
    inputs[name] = value.new_zeros(value.shape)
    if position is not None and position.form == "rotated" and value.is_floating_point():
        one = probe.noise(value.flatten(0, -2)[0])
        inputs[name] = one.expand_as(value).contiguous()
    return inputs


def rows(probe: Probe, inputs: Inputs | None = None) -> Tensor:
    """What the module says of each position: (positions, samples, width)."""
    out = probe.call(plain_inputs(probe) if inputs is None else inputs)
    return by_position(probe, out)


def by_position(probe: Probe, out: Tensor) -> Tensor:
    """An output with its positions first, then all samples and heads, then the width."""
    axes = list(probe.contract.output)
    position = probe.contract.position
    grid = position.grid if position is not None else ()
    places = [axes.index(s) for s in grid] if set(grid) <= set(axes) else []
    if not places:
        places = [axes.index("*".join(grid) if grid else "S")]
    out = out.movedim(places, list(range(len(places)))).flatten(0, len(places) - 1)
    return out.reshape(out.shape[0], -1, out.shape[-1])


def grid_sizes(probe: Probe) -> tuple[int, int]:
    """Rows and columns of the grid."""
    position = probe.contract.position
    assert position is not None
    row, column = position.grid
    return probe.measure(row), probe.measure(column)


def equal_rows(table: Tensor) -> tuple[int, int] | None:
    """The first two positions whose rows are the same, or None. At most 200 are looked at."""
    some = table[:200].flatten(1)
    scale = max(1.0, some.abs().max().item()) if some.numel() else 1.0
    gap = (some[:, None] - some[None]).abs().amax(-1)
    same = (~(gap > DISTINCT * scale)).triu(1)
    if not same.any().item():
        return None
    pair = same.nonzero()[0].tolist()
    return pair[0], pair[1]


def earlier_equal_row(table: Tensor, p: int) -> int | None:
    """The first earlier position with the row of position p."""
    scale = max(1.0, table.abs().max().item())
    gap = (table[:p] - table[p : p + 1]).flatten(1).abs().amax(1)
    same = (~(gap > DISTINCT * scale)).tolist()
    return same.index(True) if True in same else None


def bias(probe: Probe) -> Tensor:
    """What is added to scores of zero, (H, Sq, Sk), less what each query's own position gets.

    A constant per query is lost in the softmax, so it is no difference."""
    out = probe.call(plain_inputs(probe))
    added = out.reshape(-1, *out.shape[-3:])[0]
    own = added.diagonal(offset(added), -2, -1)  # a query stands at the last key that it may see
    return added - own.unsqueeze(-1)


def offset(scores: Tensor) -> int:
    """The position of the first query, if the last one stands at the last key."""
    return int(scores.shape[-1] - scores.shape[-2])


def slopes(heads: int) -> list[float]:
    """Of ALiBi: those of the power of two below, then every second of the next one's."""
    n = 2 ** int(math.log2(heads))
    whole = [2 ** (-8 * (h + 1) / n) for h in range(n)]
    return whole + [2 ** (-8 * (h + 0.5) / n) for h in range(heads - n)]
