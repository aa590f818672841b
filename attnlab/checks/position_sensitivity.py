"""Different positions are told apart.

A module that is there to say where things stand must say something else for every place. Rows of a
table differ pairwise; a vector that is turned comes to lie elsewhere at each position; a bias
depends on the key. A whole module gives its last position another output when two earlier ones
change places, or equal inputs different outputs.

Wrong: `return x`; a table whose rows were never filled; `pe[:, 0]` for every position; positions
in float16, where 2049 is 2048.
Right: row p for position p.
"""

from attnlab.catalogue.contract_facts import data_inputs
from attnlab.checks.base import Failure, Probe, Skip, Tensor, Tier, far
from attnlab.checks.shared.positions import alike, bias, rows
from attnlab.records import Input

TITLE = "Positions can be told apart"
NEEDS = ("output", "ordered")
TIER = Tier.ORDER
ADVICE = "Feed zeros and print two rows of the result: what is added must differ between them."
FEW = 3


def run(probe: Probe) -> Failure | None:
    position = probe.contract.position
    if position is None:
        return _swapped(probe)
    if position.form == "bias":
        return _flat(bias(probe))
    table = rows(probe)
    if len(table) < 2:
        raise Skip("there is one position only")
    pair = alike(table)
    if pair is None:
        return None
    return Failure(
        message=f"positions {pair[0]} and {pair[1]} of {len(table)} get the same encoding"
    )


def _flat(added: Tensor) -> Failure | None:
    """A head whose bias is the same for all keys says nothing of positions."""
    if added.shape[-1] < 2:
        raise Skip("there is one key only")
    for head, values in enumerate(added):
        if not values.abs().max().item() > 0:
            return Failure(message=f"the bias of head {head} is the same for every key")
    return None


def _swapped(probe: Probe) -> Failure | None:
    if "S" not in probe.contract.output or probe.sizes.get("S", 0) < FEW:
        raise Skip("too few positions to exchange two before the last")
    last = probe.sizes["S"] - 1
    inputs = probe.draw("none")
    other = dict(inputs)
    for spec in _vectors(probe):
        moved = inputs[spec.name].clone().movedim(spec.axes.index("S"), 0)
        moved[[last - 2, last - 1]] = moved[[last - 1, last - 2]]
        other[spec.name] = moved.movedim(0, spec.axes.index("S")).contiguous()
    at = probe.contract.output.index("S")
    before, after = probe.call(inputs), probe.call(other)
    if far(before.select(at, last), after.select(at, last)).any().item() or _uneven(probe, at):
        return None
    return Failure(
        message=f"positions {last - 2} and {last - 1} of the input changed places, and the output "
        f"at position {last} stayed as it was: it does not know the order"
    )


def _vectors(probe: Probe) -> list[Input]:
    """What stands at positions; whole numbers beside vectors may say where these stand."""
    along = data_inputs(probe.contract, "S")
    return [i for i in along if i.dtype == "float"] or along


def _uneven(probe: Probe, at: int) -> bool:
    """Equal inputs at all positions do not give equal outputs."""
    inputs = probe.draw("none")
    for spec in _vectors(probe):
        axis, value = spec.axes.index("S"), inputs[spec.name]
        inputs[spec.name] = value.narrow(axis, 0, 1).expand_as(value).contiguous()
    out = probe.call(inputs)
    uneven: bool = far(out, out.narrow(at, 0, 1).expand_as(out)).any().item()
    return uneven
