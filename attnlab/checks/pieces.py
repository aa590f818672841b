"""Parts of inputs, for checks that change, cut or repeat them. Not a check itself."""

from __future__ import annotations

from attnlab.abilities import by_query, data_inputs, key_axis, query_axis
from attnlab.checks.base import Failure, Inputs, Probe, Tensor, describe, first_index
from attnlab.records import Contract

EPS = {"float64": 2**-23, "bfloat16": 2**-8, "float16": 2**-11}
ROUNDINGS = 24  # in a chain, each relative to the largest value


def moved(probe: Probe, inputs: Inputs, axis: str, where: slice, scale: float = 1.0) -> Inputs:
    """The inputs with new random data at the positions `where` of an axis; ids become others."""
    found = dict(inputs)
    for spec in data_inputs(probe.contract, axis):
        new = inputs[spec.name].clone()
        part = new.movedim(spec.axes.index(axis), 0)[where]
        drawn = probe.noise(part, scale)
        if spec.dtype == "int":
            top = max(probe.sizes.get("V", 16), 2)
            drawn = (part + 1 + drawn % (top - 1)) % top
        part.copy_(drawn)
        found[spec.name] = new
    return found


def sizes_of(probe: Probe, inputs: Inputs) -> dict[str, int]:
    """The sizes of the round, but for batch and length those of these inputs."""
    found = dict(probe.sizes)
    for axis in ("B", "S"):
        for spec in data_inputs(probe.contract, axis):
            found[axis] = inputs[spec.name].shape[spec.axes.index(axis)]
    return found


def piece(contract: Contract, inputs: Inputs, queries: slice, keys: slice) -> Inputs:
    """The inputs of these positions alone, each axis cut where the contract says what it is."""
    own, found = query_axis(contract), dict(inputs)
    context = key_axis(contract) != own
    for spec in contract.inputs:
        if inputs[spec.name] is None:
            continue
        cuts = [queries if a == own else keys if a == "Sk" and context else slice(None)
                for a in spec.axes]  # fmt: skip
        if spec.role == "mask":
            cuts[-1] = keys
        found[spec.name] = inputs[spec.name][tuple(cuts)]
    return found


def allowed(probe: Probe, inputs: Inputs) -> Tensor:
    """Which keys each query may attend to, (B, queries, keys): by the mask and by causality."""
    contract, sizes = probe.contract, []
    for axis in ("B", query_axis(contract), key_axis(contract)):
        spec = data_inputs(contract, axis)[0]
        sizes.append(inputs[spec.name].shape[spec.axes.index(axis)])
    keep = inputs[spec.name].new_zeros(sizes) == 0
    if "causal" in contract.promises:
        keep = keep.tril()
    for mask in (i for i in contract.inputs if i.role == "mask" and inputs[i.name] is not None):
        own = inputs[mask.name] != mask.forbids
        own = own if by_query(mask) or len(mask.axes) > 2 else own.unsqueeze(-2)
        for at in reversed([n for n, a in enumerate(mask.axes[: own.dim() - 2]) if a != "B"]):
            own = own.any(at)
        keep = keep & own
    return keep


def apart(probe: Probe, a: Tensor, b: Tensor) -> Tensor:
    """Where outputs that were computed in two ways differ by more than rounding explains.

    A NaN differs from everything.
    """
    return ~((a - b).abs() <= probe.tolerance(a.nan_to_num(0.0, 0.0, 0.0)))


# ---------------------------------------------------------------- with a cache


def stepwise(probe: Probe, lengths: list[int]) -> Failure | None:
    """A sequence at once, and in steps of these lengths that share a cache: what differs."""
    inputs, at = ordered(probe), probe.contract.output.index("S")
    whole = probe.call(inputs)
    start = 0
    for number, out in enumerate(probe.steps(parts(probe.contract, inputs, lengths))):
        right = whole.narrow(at, start, lengths[number])
        said = f"step {number + 1} of {lengths} positions, which begins at position {start},"
        failure = differs(probe, right, out, said)
        if failure:
            return failure
        start += lengths[number]
    return None


def ordered(probe: Probe) -> Inputs:
    """Inputs under which no position sees a later one: all that a cache can be used for."""
    masks = [i for i in probe.contract.inputs if i.role == "mask"]
    return probe.draw("causal" if any(map(by_query, masks)) else "padding")


def parts(contract: Contract, inputs: Inputs, lengths: list[int]) -> list[Inputs]:
    """The calls of these lengths, one after the other; masks reach over all keys so far."""
    ends = [sum(lengths[: n + 1]) for n in range(len(lengths))]
    return [
        piece(contract, inputs, slice(end - length, end), slice(0, end))
        for length, end in zip(lengths, ends, strict=True)
    ]


def differs(probe: Probe, right: Tensor, out: Tensor, said: str) -> Failure | None:
    """What to say of an output in steps that is not that of the whole."""
    if out.shape != right.shape:
        return Failure(message=f"{said} gave shape {tuple(out.shape)}, not {tuple(right.shape)}")
    gap = apart(probe, right, out)
    if not gap.any().item():
        return None
    return Failure(
        message=f"{said} gave another output at its {first_index(gap)} than the whole sequence at "
        f"once, by up to {(right - out).abs().max().item():.2g}"
    )


# ---------------------------------------------------------------- beside the reference


def beside(probe: Probe, out: Tensor, expected: Tensor, how: str) -> Failure | None:
    """What to say of an output that is not the reference's."""
    if out.shape != expected.shape:  # that may change between calls; empty hides all
        return Failure(
            message=f"the output is {describe(out, probe)}, the reference's "
            f"{tuple(expected.shape)} ({how})"
        )
    gap = (out.double() - expected).abs()
    bad = ~(gap <= probe.tolerance(expected))
    if not bad.any().item():
        return None
    return Failure(
        message=f"the output differs from the reference's at {first_index(bad)} and in "
        f"{_share(bad)} of its values, by up to {gap.max().item():.2g} ({how})"
    )


def _share(bad: Tensor) -> str:
    share: float = bad.double().mean().item()
    return f"{share:.0%}" if share >= 0.005 else "less than 1%"


# ---------------------------------------------------------------- in another dtype


def off(out: Tensor, exact: Tensor, dtype: str) -> Failure | None:
    """What to say of an output in a dtype that is not near the exact one."""
    if str(out.dtype).removeprefix("torch.") != dtype:
        return Failure(message=f"module and inputs are {dtype}, and the output is {out.dtype}")
    bad = ~out.isfinite()
    if bad.any().item():
        return Failure(
            message=f"in {dtype} {int(bad.sum().item())} output values are NaN or infinite, the "
            f"first at {first_index(bad)}"
        )
    gap = (out.double() - exact.double()).abs().max().item()
    limit = ROUNDINGS * EPS[dtype] * max(1.0, exact.abs().max().item())
    if not gap <= limit:
        return Failure(
            message=f"in {dtype} the output is off by up to {gap:.2g} from float32's; rounding "
            f"explains {limit:.2g}"
        )
    return None
