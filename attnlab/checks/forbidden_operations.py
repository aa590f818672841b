"""Nothing that the task forbids is used.

Some exercises are to be written by hand, and some exist to avoid a tensor that is too large.

Wrong: `nn.MultiheadAttention` where attention is to be written; scores of all queries with all
keys where they are to be computed piece by piece.
Right: the operations that the task allows.

Forbidden are operations by their names ("scaled_dot_product_attention"), modules of PyTorch
("nn.MultiheadAttention") and shapes ("S S": no tensor of numbers has two axes of the size of the
sequence, or one of its square). Read off the operations as the process that ran the candidate tells
them.
"""

from collections.abc import Sequence
from math import prod

from attnlab.checks.base import Failure, Probe, Tier, check
from attnlab.records import Op

# Primes, so that only a multiple of S * S has one twice as a factor. A block of all 131 queries is
# none of 521. What goes block by block at 131 is not recorded at 521, where loops take long.
LENGTHS = (131, 521)


@check(
    title="Nothing forbidden is used",
    needs=("output", "forbidden"),
    tier=Tier.ASIDE,
    advice=(
        "The task says what may not be used; write this step with the operations that it allows."
    ),
    trusted=False,
    once=True,
)
def run(probe: Probe) -> Failure | None:
    forbidden = probe.contract.forbidden
    modules = probe.module_facts().modules
    for said in forbidden:
        if said.startswith("nn.") and said in modules:
            return Failure(message=f"{said} is among the submodules, and the task forbids it")
    shaped = any(" " in said for said in forbidden) and "S" in probe.contract.vary
    most = probe.sizes.get("M", max(LENGTHS))
    longer = (probe.variant({"S": min(length, most)}) for length in LENGTHS)
    failure = None
    for here in longer if shaped else [probe]:
        ops = here.operations(here.draw("random"))
        failure = next(filter(None, (_forbidden(here, ops, said) for said in forbidden)), None)
        if failure is None:
            return None
    return failure


def _forbidden(probe: Probe, ops: Sequence[Op], said: str) -> Failure | None:
    return _shaped(probe, ops, said) if " " in said else _named(ops, said)


def _named(ops: Sequence[Op], said: str) -> Failure | None:
    name = "multi_head_attention_forward" if said == "nn.MultiheadAttention" else said
    line = next((op.line for op in ops if op.op == name), None)
    message = f"line {line} calls {name}, which the task forbids"
    return None if line is None else Failure(message=message)


def _shaped(probe: Probe, ops: Sequence[Op], said: str) -> Failure | None:
    """A tensor of numbers that holds a value for each combination of these axes."""
    square = prod(map(probe.measure, said.split()))
    for op in ops:
        count = prod(op.shape)
        if op.dtype != "bool" and square > 1 and count and count % square == 0:
            return Failure(
                message=f"line {op.line}: {op.op} makes a tensor of shape {op.shape}, which holds "
                f"a value for each of {said.replace(' ', ' x ')} = {square}; the task forbids that"
            )
    return None
