"""What explains a failure: a constant factor, heads that are not transposed. Not a check."""

from collections.abc import Iterable
from dataclasses import replace

from attnlab.catalogue.contract_facts import known_facts
from attnlab.checks.base import Failure, Probe
from attnlab.probe.answers import Inputs, Tensor
from attnlab.records import Contract
from attnlab.sizes import Sizes

NEAR = 1e-3  # relative, between a factor and the one that it is called
BY_HAND = "Work out one value of the output by the formula of the task, and compare."
HEADS = (
    "Compute the scores of one query by hand and compare, then what follows the heads: projection, "
    "bias, norm, residual."
)
PORTED = (
    "The model is right as it stands: compare each tensor that is converted with the task, its "
    "shape and a few of its numbers."
)
JOINED = "Write the axes of the heads beside each line up to where they become (B, S, D) again."
FILL = 1e4  # scores beyond it were put there by a mask


def what_to_compare(contract: Contract) -> str:
    """What to do where values differ; weights among the inputs are those of a port."""
    data = (i for i in contract.inputs if i.role == "data")
    if "B" in contract.output and any("B" not in i.axes for i in data):
        return PORTED
    return HEADS if "attention" in known_facts(contract) else BY_HAND


def constant_factor(values: Tensor, right: Tensor, limit: float) -> float | None:
    """The number, other than 1, that all of `right` is multiplied by to give `values`."""
    values, right = values.double().flatten(), right.double().flatten()
    length = (right * right).sum().item()
    if values.shape != right.shape or not length > 0:
        return None
    factor: float = (values * right).sum().item() / length
    gap = (values - factor * right).abs().max().item()
    if not gap <= limit * max(1.0, abs(factor)) or abs(factor - 1) <= NEAR or factor == 0:
        return None
    return factor


def factor_name(factor: float, sizes: Sizes) -> str:
    """The factor, and what it is of the sizes: "2.236 = sqrt(hd)"."""
    for symbol in (s for s in ("hd", "D", "H") if sizes.get(s, 1) > 1):
        size = sizes[symbol]
        names = {
            f"sqrt({symbol})": size**0.5,
            symbol: size,
            f"1/sqrt({symbol})": size**-0.5,
            f"1/{symbol}": 1 / size,
        }
        for name, value in names.items():
            if abs(abs(factor) - value) <= NEAR * value:
                return f"{factor:.4g} = {'-' if factor < 0 else ''}{name}"
    return f"{factor:.4g}"


def factor_beside(probe: Probe, inputs: Inputs, out: Tensor, expected: Tensor) -> str:
    """What to add to a message on wrong values: the factor between the outputs, without the
    residual where there is one, or between the scores of attention; "" where there is none."""
    data = inputs[next(i.name for i in probe.contract.inputs if i.role == "data")]
    pairs = [("the output", out.double(), expected)]
    if data is not None and data.shape == out.shape and data.is_floating_point():
        pairs.append(("without the residual the output", out.double() - data, expected - data))
    limit = probe.tolerance(expected)
    found = [(what, constant_factor(mine, right, limit)) for what, mine, right in pairs]
    for mine, right in probe.scores_and_expected(inputs):
        if mine.shape == right.shape:
            open_ = (mine.abs() < FILL) & (right.abs() < FILL)
            factor = constant_factor(mine[open_], right[open_], probe.tolerance(right[open_]))
            found.append(("before the softmax the scores", factor))
    for what, factor in found:
        if factor is not None:
            verb = "are" if what.endswith("scores") else "is"
            return f": {what} {verb} {factor_name(factor, probe.sizes)} times the reference's"
    return ""


def joined_heads(probe: Probe, failure: Failure, position: int, rows: Iterable[int]) -> Failure:
    """The failure by which changing a position changed these rows of the output; explained by the
    layout where they hold that position when (B, H, S, hd) is read as (B, S, D)."""
    length, heads = probe.sizes.get("S", 1), probe.sizes.get("H", 1)
    reached = {(head * length + position) // heads for head in range(heads)} - {position}
    neighbours = set(range(min(reached, default=0), position))  # as a shifted mask reaches them
    if set(rows) - {position} != reached or reached == neighbours or len(reached) >= length - 1:
        return failure
    message = (
        f"{failure.message}; these are the rows that hold position {position} where the memory of "
        "(B, H, S, hd) is read as (B, S, D)"
    )
    return replace(failure, message=message, advice=JOINED)
