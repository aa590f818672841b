"""Dropout drops what the reference drops: as often, at the same place, each value by itself.

In train mode outputs scatter about that of eval mode. How far, and which of them together, tells
how much is dropped, where, and what shares one draw; the reference scatters in the same way.

Wrong: two dropouts in a row; `nn.Dropout(1 - keep)` for `nn.Dropout(keep)`; dropout on the scores,
before the softmax, or on the output, where the weights are asked for; one mask for all rows of the
batch, or for whole heads.
Right: one `F.dropout(weights, p, self.training)`, where the task says.

The outputs of many calls with the same inputs, all rows of a batch alike, are compared with as many
of the reference, by their squared distances from eval mode and by their products with each other.
How large a difference is mere chance is told by shuffling the calls of both.
"""

import math

from attnlab.checks.base import Failure, Inputs, Probe, Tensor, Tier

TITLE = "Dropout drops what the reference drops"
NEEDS = ("reference", "output", "dropout", "same-dropout")
TIER = Tier.LEARNING
ADVICE = "Look for a second dropout, for its probability, and for what it is given: its shape."
FEW = True
CALLS = 192  # of each of the two
SHUFFLES = 200
# Standard deviations of the shuffled. Products are skewed as a square is, so they need more room.
SURE, SURER = 8.0, 15.0


def run(probe: Probe) -> Failure | None:
    inputs = _alike(probe)
    right, exact = probe.call(inputs), probe.expected(inputs)
    asked = probe.calls([inputs] * CALLS, train=True)
    mine = [_away(out, right) for out in asked]
    theirs = [_away(out, exact) for out in probe.expected_in_training(inputs, CALLS)]
    both = mine[0].new_zeros(2 * CALLS, mine[0].numel())
    for row, shift in zip(both, (*mine, *theirs), strict=True):
        row.copy_(shift)
    sides = _sides(probe, both)
    products = both @ both.mT
    squares = products.diagonal()
    if _unlikely(sides @ squares, SURE):
        return Failure(
            message=f"over {CALLS} calls in train mode the output is {_far(squares[:CALLS])} away "
            f"from that of eval mode, the reference's {_far(squares[CALLS:])} (root mean square)"
        )
    alike = products.square()
    alike.fill_diagonal_(0.0)
    if _unlikely(((sides @ alike) * sides).sum(-1), SURER):
        return Failure(
            message="in train mode the output strays from that of eval mode as far as the "
            "reference's, but other values go together: what is dropped stands at another place, "
            "or one draw is shared by what has one each"
        )
    return None


def _alike(probe: Probe) -> Inputs:
    """Inputs with the same sequence in every row: a draw that rows share moves them alike."""
    inputs = dict(probe.sample()[0])
    for spec in probe.contract.inputs:
        tensor = inputs[spec.name]
        if tensor is not None and "B" in spec.axes:
            at = spec.axes.index("B")
            inputs[spec.name] = tensor.narrow(at, 0, 1).expand_as(tensor).clone()
    return inputs


def _away(out: Tensor, calm: Tensor) -> Tensor:
    return (out.double() - calm.double()).flatten()


def _sides(probe: Probe, both: Tensor) -> Tensor:
    """+1 and -1 for the calls of the two: as they are first, then shuffled."""
    orders = probe.noise(both.new_zeros(SHUFFLES + 1, 2 * CALLS)).argsort(-1).argsort(-1)
    sides = (orders < CALLS).double() * 2 - 1
    sides[0, :CALLS], sides[0, CALLS:] = 1.0, -1.0
    return sides


def _unlikely(found: Tensor, sure: float) -> bool:
    """Whether the first lies apart from the others, which show what chance does."""
    others = found[1:]
    away = (found[0] - others.mean()).abs().item()
    return bool(away > sure * others.std().item() and away > 0)


def _far(squares: Tensor) -> str:
    return f"{math.sqrt(squares.mean().item()):.3g}"
