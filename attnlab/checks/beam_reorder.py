"""After beams are reordered, each goes on from what its parent has seen.

In beam search row b of the next step continues row parents[b] of this one. The cache must follow.

Wrong: keys reordered and values not, a reorder along the heads, a cache that ignores its result,
positions or lengths that stay behind.
Right: `index_select(0, parents)` of everything that the cache holds for a row.

Probed by a prompt, a reorder in which one row has two children, and two more steps; compared with
each child's own sequence in one pass.
"""

from attnlab.checks.base import Failure, Inputs, Probe, Skip, Tensor, Tier, data_inputs
from attnlab.checks.shared.inputs import differs, ordered, parts

TITLE = "The cache follows reordered beams"
NEEDS = ("beams", "causal", "sequence", "batch")
FEW = True
TIER = Tier.WEIGHTS
STEPS = 2  # after the reorder
ADVICE = "List what the cache holds, and which of it has a row for each beam: all of that moves."


def run(probe: Probe) -> Failure | None:
    rows, length = probe.sizes.get("B", 1), probe.sizes.get("S", 1)
    if rows < 2 or length < 2:
        raise Skip("one beam, or one position, has nothing to reorder")
    inputs, contract = ordered(probe), probe.contract
    order = [probe.random_integer(0, rows) for _ in range(rows)]
    order[0], order[1] = 1, 1  # one row has two children, and row 0 has none of its own
    parents = _first(probe, inputs).new_tensor(order).long()
    after = min(STEPS, length - 1)
    prompt = length - after
    calls = parts(contract, inputs, [prompt, *[1] * after])
    outputs = probe.cached_steps(calls, parents)
    whole = probe.call(_children(probe, inputs, parents, prompt))
    for number, out in enumerate(outputs[1:]):
        right = whole.narrow(contract.output.index("S"), prompt + number, 1)
        said = f"step {number + 1} after beams were reordered by {order}"
        failure = differs(probe, right, out, said)
        if failure:
            return failure
    return None


def _first(probe: Probe, inputs: Inputs) -> Tensor:
    return inputs[data_inputs(probe.contract, "S")[0].name]


def _children(probe: Probe, inputs: Inputs, parents: Tensor, prompt: int) -> Inputs:
    """Each row's own sequence: the parent's prompt, then what it is given itself."""
    found = dict(inputs)
    for spec in data_inputs(probe.contract, "S"):
        if "B" not in spec.axes:
            continue
        rows, at = spec.axes.index("B"), spec.axes.index("S")
        new = inputs[spec.name].clone()
        old = inputs[spec.name].index_select(rows, parents)
        new.narrow(at, 0, prompt).copy_(old.narrow(at, 0, prompt))
        found[spec.name] = new
    return found
