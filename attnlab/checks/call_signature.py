"""Arguments are in the order of the task, and optional ones can be left out.

Every other check passes all arguments, and each by its name.

Wrong: `def forward(self, x, mask)` where `mask=None` was asked for: `m(x)` raises a
TypeError; `__init__(self, num_heads, embed_dim)`, which builds a module of other sizes.
Right: the order and the defaults of the task; names of forward's arguments are free.

The module is built and called with positional arguments: with a mask, and without one. Where the
task states a default for the last arguments of the constructor, the module is also built without
them, and must then compute the same as with that default.
"""

from math import lcm

from attnlab.checks.base import Failure, Probe, Tier, check
from attnlab.checks.shared.compare import failure_at, far, first_failure
from attnlab.probe.answers import Mask, Tensor

NARROW = 2


@check(
    title="Arguments are in the order of the task",
    needs=("output", "signature"),
    tier=Tier.REGIMES,
    advice=(
        "Compare the arguments of __init__ and forward with the task: their order and defaults."
    ),
    once=True,
)
def run(probe: Probe) -> Failure | None:
    kinds: tuple[Mask, ...] = ("random", "none")
    masked = any(i.role == "mask" for i in probe.contract.inputs)
    kinds = kinds if masked else kinds[:1]
    samples = [probe.sample(mask) for mask in kinds]
    outputs = probe.positional_calls([inputs for inputs, _ in samples])
    failure = first_failure(
        _differs(named, out, "with the mask left out" if mask == "none" else "by position")
        for mask, (_, named), out in zip(kinds, samples, outputs, strict=True)
    )
    return failure or (_left_out(probe) if probe.contract.defaults else None)


def _differs(named: Tensor, out: Tensor, how: str) -> Failure | None:
    if out.shape != named.shape:
        return Failure(
            message=f"built by position and called {how}, it returns {tuple(out.shape)}; by "
            f"name {tuple(named.shape)}"
        )
    return failure_at(
        far(named, out),
        lambda where: (
            f"built by position and called {how}, the output at {where} differs from that by name"
        ),
    )


def _left_out(probe: Probe) -> Failure | None:
    """Sequences as long as the default allows, in a module that is as narrow as can be."""
    contract = probe.contract
    stated = {str(contract.init[name]): value for name, value in contract.defaults.items()}
    small = {"B": 1, "D": lcm(NARROW, contract.multiples.get("D", 1))}
    small = {"B": 1} if "H" in contract.sizes else small
    small |= {"S": stated["M"]} if "M" in stated else {}
    other = probe.variant({**{s: n for s, n in small.items() if s in contract.vary}, **stated})
    inputs = other.draw()
    named, out = other.call(inputs), other.positional_calls([inputs], bare=True)[0]
    if named.shape == out.shape and not far(named, out).any().item():
        return None
    names = ", ".join(f"{name}={value}" for name, value in contract.defaults.items())
    return Failure(
        message=f"the output changes when {names} is left out, though that is its default"
    )
