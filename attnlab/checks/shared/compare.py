"""What checks ask of a round and of two outputs, and the failures that follow. Not a check."""

from collections.abc import Callable, Iterable

from attnlab.checks.base import Failure, Probe
from attnlab.probe.answers import Mask, Skip, Tensor
from attnlab.records import Contract

SAME = 1e-5  # of the largest output: how far two runs of the same float32 module may differ


def mask_kinds(contract: Contract, *kinds: Mask) -> tuple[Mask, ...]:
    """The kinds of mask to probe: those given, and empty rows where they are promised. Padding in
    front leaves such rows where each position sees none after it, and keys that come late.

    To a module that takes no mask they are all one."""
    if not any(i.role == "mask" for i in contract.inputs):
        return kinds[:1]
    if "empty-rows" not in contract.promises:
        return kinds
    causal = "causal" in contract.promises
    return (*kinds, "empty-rows", "left-padding") if causal else (*kinds, "empty-rows")


def size_from_two(probe: Probe, axis: str, reason: str) -> int:
    """The size of an axis in this round; raises `Skip` for this reason where it is 1."""
    size = probe.sizes.get(axis, 1)
    if size < 2:
        raise Skip(reason)
    return size


def expected_shape(probe: Probe) -> tuple[int, ...]:
    """The contract's output axes at this round's sizes."""
    return tuple(probe.measure(axis) for axis in probe.contract.output)


def describe(out: Tensor, probe: Probe) -> str:
    """A shape with the sizes it was made at: "(3, 35) at B=3, S=7, D=30"."""
    sizes = ", ".join(f"{k}={v}" for k, v in probe.sizes.items())
    return f"{tuple(out.shape)} at {sizes}"


def far(a: Tensor, b: Tensor) -> Tensor:
    """Where two outputs of the same module differ by more than another summation order explains.

    A NaN differs from everything."""
    scale = max(1.0, a.abs().nan_to_num(0.0, 1.0, 1.0).max().item() if a.numel() else 1.0)
    return ~((a - b).abs() <= SAME * scale)


def failure_at(bad: Tensor, message: Callable[[str], str], advice: str = "") -> Failure | None:
    """The failure that `message` makes of the first True, as "[0, 3, 1]"; None where nothing is."""
    return Failure(message=message(first_index(bad)), advice=advice) if bad.any().item() else None


def first_failure(failures: Iterable[Failure | None]) -> Failure | None:
    """The first of them that is one; what comes after it is not looked at."""
    return next(filter(None, failures), None)


def first_index(where: Tensor) -> str:
    """The first True, as "[0, 3, 1]"."""
    return str(where.nonzero()[0].tolist())
