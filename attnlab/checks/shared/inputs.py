"""Parts of inputs, for checks that change, cut or repeat them. Not a check itself."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

from attnlab.catalogue.contract_facts import (
    data_inputs,
    has_query_axis,
    key_axis,
    mask_input,
    query_axis,
)
from attnlab.checks.base import Failure, Probe
from attnlab.checks.shared.compare import describe, failure_at, first_failure, first_index
from attnlab.probe.answers import CannotTell, Inputs, Mask, Skip, Tensor
from attnlab.records import Contract

EPS = {"float64": 2**-23, "bfloat16": 2**-8, "float16": 2**-11}
SLACK = 10  # times the tolerance of a value: a backward pass is a longer chain
LENGTH = (
    "The gradient is wrong since the output is: look for what depends on the length, such as "
    "chunks, blocks and tables, and compare values at these sizes."
)
BACKWARD = (
    "Derive backward by hand, one input at a time, and compare its terms: which is missing, which "
    "axis was summed over?"
)
WHOLE = "that of the whole sequence at once"
SHOWN = 12  # lengths of steps in a message
ROUNDINGS = 24  # in a chain, each relative to the largest value


def redraw(probe: Probe, inputs: Inputs, axis: str, where: slice, scale: float = 1.0) -> Inputs:
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


def change_along(
    probe: Probe, inputs: Inputs, axis: str, change: Callable[[Tensor, int], Tensor]
) -> Inputs:
    """The inputs with `change` of each tensor and its axis, for every axis of this name."""
    found = dict(inputs)
    for spec in probe.contract.inputs:
        for at, symbol in enumerate(spec.axes):
            if symbol == axis and found[spec.name] is not None:
                found[spec.name] = change(found[spec.name], at)
    return found


def first_along(value: Tensor, at: int) -> Tensor:
    """The first slice along an axis in place of all: a `change` of `change_along`."""
    return value.narrow(at, 0, 1).expand_as(value).clone()


def hide_key(probe: Probe, inputs: Inputs, key: int, length: int) -> Inputs:
    """The inputs with this key masked for every query, each of which keeps another key."""
    spec = mask_input(probe.contract)
    if inputs[spec.name].shape[-1] != length:
        raise Skip("the mask's last axis is not the sequence")
    mask = inputs[spec.name].clone()
    mask[..., key] = spec.forbids
    bare = (mask == spec.forbids).all(-1)
    spare = 0 if "causal" in probe.contract.promises else (key + 1) % length
    mask[..., spare][bare] = not spec.forbids
    return {**inputs, spec.name: mask}


def sizes_of(probe: Probe, inputs: Inputs) -> dict[str, int]:
    """The sizes of the round, but for batch and lengths those of these inputs."""
    found = dict(probe.sizes)
    for axis in ("B", "S", "Sq", "Sk"):
        there = (s for s in data_inputs(probe.contract, axis) if inputs[s.name] is not None)
        for spec in there:
            found[axis] = inputs[spec.name].shape[spec.axes.index(axis)]
    return found


def cut_positions(contract: Contract, inputs: Inputs, queries: slice, keys: slice) -> Inputs:
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
    if "causal" in contract.promises and key_axis(contract) == query_axis(contract):
        keep = keep.tril()
    for mask in (i for i in contract.inputs if i.role == "mask" and inputs[i.name] is not None):
        own = inputs[mask.name] != mask.forbids
        own = own if has_query_axis(mask) or len(mask.axes) > 2 else own.unsqueeze(-2)
        for at in reversed([n for n, a in enumerate(mask.axes[: own.dim() - 2]) if a != "B"]):
            own = own.any(at)
        keep = keep & own
    return keep


def beyond_rounding(probe: Probe, a: Tensor, b: Tensor) -> Tensor:
    """Where outputs that were computed in two ways differ by more than rounding explains.

    A NaN differs from everything."""
    return ~((a - b).abs() <= probe.tolerance(a.nan_to_num(0.0, 0.0, 0.0)))


# ---------------------------------------------------------------- with a cache


def cached_mismatch(probe: Probe, lengths: list[int], train: bool = False) -> Failure | None:
    """A sequence at once, and in steps of these lengths that share a cache: what differs."""
    inputs = causal_inputs(probe)
    outputs = probe.cached_steps(cached_calls(probe.contract, inputs, lengths), train=train)
    how = " in train mode" if train else ""
    return steps_mismatch(probe, probe.call(inputs), outputs, lengths, how)


def steps_mismatch(
    probe: Probe,
    whole: Tensor,
    outputs: list[Tensor],
    lengths: list[int],
    how: str = "",
    whose: str = WHOLE,
) -> Failure | None:
    """What differs between the outputs of steps and the whole."""
    steps = f"{lengths[:SHOWN]}{'...' if len(lengths) > SHOWN else ''} positions{how}"
    rights = whole.split(lengths, probe.contract.output.index("S"))
    starts = enumerate(accumulate(lengths, initial=0), 1)
    names = (f"step {n} of {steps}, which begins at position {start}," for n, start in starts)
    return first_failure(
        step_mismatch(probe, right, out, name, whose)
        for right, out, name in zip(rights, outputs, names, strict=False)
    )


def causal_inputs(probe: Probe) -> Inputs:
    """Inputs under which no position sees a later one: all that a cache can be used for. Prompts
    are padded on the left, where rows may be empty."""
    masks = [i for i in probe.contract.inputs if i.role == "mask"]
    padding: Mask = "left-padding" if "empty-rows" in probe.contract.promises else "padding"
    return probe.draw("causal" if any(map(has_query_axis, masks)) else padding)


def cached_calls(contract: Contract, inputs: Inputs, lengths: list[int]) -> list[Inputs]:
    """The calls of these lengths, one after the other; masks reach over all keys so far."""
    return [
        cut_positions(contract, inputs, slice(end - length, end), slice(0, end))
        for length, end in zip(lengths, accumulate(lengths), strict=True)
    ]


def step_mismatch(
    probe: Probe, right: Tensor, out: Tensor, step: str, whose: str = WHOLE
) -> Failure | None:
    """What to say of an output in steps that is not that of the whole."""
    if out.shape != right.shape:
        return Failure(message=f"{step} gave shape {tuple(out.shape)}, not {tuple(right.shape)}")
    return failure_at(
        beyond_rounding(probe, right, out),
        lambda at: (
            f"the output of {step} differs at {at} from {whose}, "
            f"by up to {(right - out).abs().max().item():.2g}"
        ),
    )


# ---------------------------------------------------------------- beside the reference


def mismatch(probe: Probe, out: Tensor, expected: Tensor, how: str) -> Failure | None:
    """What to say of an output that is not the reference's."""
    if out.shape != expected.shape:  # that may change between calls; empty hides all
        return Failure(
            message=f"the output is {describe(out, probe)}, the reference's "
            f"{tuple(expected.shape)} ({how})"
        )
    gap = _matters(probe.contract, out.double() - expected).abs()
    bad = ~(gap <= probe.tolerance(expected))
    if not bad.any().item():
        return None
    nan = gap.isnan()
    return failure_at(
        nan,
        lambda at: (
            f"the output is NaN at {at} and in {_share(nan)} of its values, "
            f"where the reference's is a number ({how})"
        ),
    ) or failure_at(
        bad,
        lambda at: (
            f"the output differs from the reference's at {at} and in {_share(bad)} of its "
            f"values, by up to {gap.max().item():.2g} ({how})"
        ),
    )


def at_sizes_of(probe: Probe, inputs: Inputs, failure: Failure | None) -> Failure | None:
    """The failure, where there is one, as one at the sizes of these inputs."""
    return failure and replace(failure, sizes=sizes_of(probe, inputs))


def prefer_output(probe: Probe, failure: Failure, inputs: Inputs, train: bool) -> Failure:
    """The failure of a gradient, or that of the output where that is wrong already."""
    out, right = probe.call(inputs, train=train), probe.expected(inputs)
    wrong = mismatch(probe, out, right, "in train mode" if train else "in eval mode")
    return replace(wrong, advice=LENGTH, sizes=sizes_of(probe, inputs)) if wrong else failure


def _matters(contract: Contract, gap: Tensor) -> Tensor:
    """Of a difference of biases, what the softmax leaves of it: a constant of a query is lost, and
    so are keys after it where they will be hidden."""
    position = contract.position
    if position is None or position.form != "bias" or gap.dim() < 2:
        return gap
    ahead = gap.shape[-1] - gap.shape[-2]  # a query stands at the last key that it may see
    if ahead < 0:
        return gap
    gap = gap - gap.diagonal(ahead, -2, -1).unsqueeze(-1)
    return gap.tril(ahead) if position.causal else gap


def _share(bad: Tensor) -> str:
    share: float = bad.double().mean().item()
    return f"{share:.0%}" if share >= 0.005 else "less than 1%"


def by_hand(probe: Probe, failure: Failure) -> Failure:
    """The failure of a gradient; where backward is written by hand, no graph was cut."""
    return replace(failure, advice=BACKWARD) if probe.defines("backward") else failure


def gradient_mismatch(
    probe: Probe, found: Mapping[str, Tensor], right: Mapping[str, Tensor], how: str
) -> Failure | None:
    """What to say of gradients that are not the reference's."""
    return first_failure(
        _gradient_differs(name, how, found.get(name), expected, SLACK * probe.tolerance(expected))
        for name, expected in right.items()
    )


def _gradient_differs(
    name: str, how: str, mine: Tensor | None, expected: Tensor, limit: float
) -> Failure | None:
    largest = expected.abs().max().item() if expected.numel() else 0.0
    if mine is None:
        missing = f"no gradient reaches {name}{how}; the reference's goes up to {largest:.2g}"
        return Failure(message=missing) if largest > limit else None
    if mine.shape != expected.shape:
        return Failure(message=f"the gradient of {name} has shape {tuple(mine.shape)}")
    gap = (mine.double() - expected).abs()
    return failure_at(
        ~(gap <= limit),
        lambda at: (
            f"the gradient of {name}{how} differs from the reference's at {at}, by up to "
            f"{gap.max().item():.2g} of {largest:.2g}"
        ),
    )


# ---------------------------------------------------------------- in another dtype


def dtype_mismatch(out: Tensor, exact: Tensor, dtype: str, room: float = 0.0) -> Failure | None:
    """What to say of an output in a dtype that is further than `room` from the exact one."""
    if str(out.dtype).removeprefix("torch.") != dtype:
        return Failure(
            message=f"the module and its inputs are {dtype}, but the output is {out.dtype}"
        )
    bad = ~out.isfinite()
    failure = failure_at(
        bad,
        lambda at: (
            f"in {dtype} {int(bad.sum().item())} output values are NaN or infinite, the "
            f"first at {at}"
        ),
    )
    gap = (out.double() - exact.double()).abs().max().item()
    limit = max(room, ROUNDINGS * EPS[dtype] * max(1.0, exact.abs().max().item()))
    if failure or gap <= limit:
        return failure
    return Failure(
        message=f"in {dtype} the output differs from float32's by up to {gap:.2g}; rounding "
        f"explains at most {limit:.2g}"
    )


def cast_gradient_mismatch(probe: Probe, dtypes: Sequence[str], mask: Mask) -> Failure | None:
    """What to say of gradients in other dtypes, in train mode, that are not the reference's."""
    if not dtypes:
        return None
    inputs, _ = probe.sample(mask)
    found = probe.cast_gradients(dtypes, inputs, train="dropout" not in probe.contract.promises)
    try:
        right = probe.expected_gradients(inputs, found[0].cotangent)
    except CannotTell:
        return None
    return first_failure(
        _cast_gradient_differs(mine.parameters, right.parameters, dtype)
        or _cast_gradient_differs(mine.inputs, right.inputs, dtype)
        for dtype, mine in zip(dtypes, found, strict=True)
    )


def _cast_gradient_differs(
    found: Mapping[str, Tensor], right: Mapping[str, Tensor], dtype: str
) -> Failure | None:
    """Sums of many values that nearly cancel are as far off as the largest of all gradients."""
    largest = max((g.abs().max().item() for g in right.values() if g.numel()), default=0.0)
    limit = ROUNDINGS * EPS[dtype] * max(1.0, largest)
    for name, expected in right.items():
        mine = found.get(name, expected * 0).double()
        if mine.shape != expected.shape:
            return Failure(
                message=f"in {dtype} the gradient of {name} has shape {tuple(mine.shape)}, "
                f"expected {tuple(expected.shape)}"
            )
        bad = ~((mine - expected).abs() <= limit)
        if bad.any().item():
            missing = "" if name in found else " (none reaches it)"
            return Failure(
                message=f"in {dtype} the gradient of {name} at {first_index(bad)} is "
                f"{mine[bad][0].item():.4g}{missing}, expected {expected[bad][0].item():.4g}; "
                f"rounding explains a difference of {limit:.2g}"
            )
    return None
