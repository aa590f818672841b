"""The grader's checks for a module of your own, in your own tests.

    from attnlab.testing import assert_batch_independent, assert_causal

    def test_decoder():
        model = Decoder(d_model=16, heads=4)
        assert_causal(model, "x: B S D", sizes={"D": 16})
        assert_batch_independent(model, torch.randn(2, 5, 16))

Inputs are said as in `attnlab trace --input`, one text for each argument of `forward`, or by
example tensors. What is named in `sizes` is fixed; batch and lengths are drawn, several times, and
`M` in `sizes` is the longest sequence that the module takes, `V` the number of ids. The module is
copied, never changed; the copy is looked at in float32 on the CPU.

A property that does not hold raises `PropertyFailed`, an AssertionError. What could not be checked
at all raises `Refused`: it is no pass.
"""

from __future__ import annotations

import inspect
import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn, TypedDict, Unpack

from torch import Tensor, nn

from attnlab.case import PROMISES, parse_input, symbols_of
from attnlab.errors import PropertyFailed, Refused
from attnlab.files import shown_path
from attnlab.lab.host import Raised
from attnlab.lab.live import Examined, Subject, examine, output_of, with_promises
from attnlab.lab.sizes import LONG, ROUNDS, with_hd
from attnlab.near import did_you_mean
from attnlab.records import CheckResult, Contract, Input

__all__ = [
    "PropertyFailed",
    "Refused",
    "assert_batch_independent",
    "assert_causal",
    "assert_deterministic",
    "assert_finite",
    "assert_gradients_finite",
    "assert_mask_effective",
    "assert_matches",
    "assert_padding_invariant",
    "assert_permutation_equivariant",
]

SEED = "ATTNLAB_SEED"  # the environment variable that repeats a run
DRAWN = tuple(symbol for symbol in ("B", "S", "Sq", "Sk", "T", "L") if symbol in LONG)
AXES = {1: ("D",), 2: ("S", "D"), 3: ("B", "S", "D"), 4: ("B", "H", "S", "hd")}  # of a tensor


class Options(TypedDict, total=False):
    """What every assertion takes by keyword."""

    sizes: Mapping[str, int]  # of the symbols that the module fixes: {"D": 16, "M": 128}
    output: str  # the axes of the output; read off a call where they are not said
    pick: Callable[[Any], Tensor]  # the output, where forward returns more: `lambda out: out[0]`
    promises: tuple[str, ...]  # what else is known, as in docs/challenge-format.md: ("dropout",)
    seed: int


def assert_causal(module: Any, *inputs: str | Tensor, **options: Unpack[Options]) -> None:
    """No output depends on what comes after it; with the causal mask, where a mask is taken."""
    _hold("causality", _subject(module, inputs, options), "causal")


def assert_batch_independent(
    module: Any, *inputs: str | Tensor, **options: Unpack[Options]
) -> None:
    """Samples of a batch do not see each other."""
    _hold("batch-independence", _subject(module, inputs, options))


def assert_padding_invariant(
    module: Any, *inputs: str | Tensor, **options: Unpack[Options]
) -> None:
    """Masked padding changes nothing, however much of it there is."""
    _hold("padding-invariance", _subject(module, inputs, options))


def assert_permutation_equivariant(
    module: Any, *inputs: str | Tensor, **options: Unpack[Options]
) -> None:
    """Permuted positions give permuted outputs: the module knows no order."""
    _hold("permutation-equivariance", _subject(module, inputs, options), "averaging")


def assert_mask_effective(module: Any, *inputs: str | Tensor, **options: Unpack[Options]) -> None:
    """What a mask forbids has no influence, what it allows has."""
    _hold("mask-effect", _subject(module, inputs, options))


def assert_deterministic(module: Any, *inputs: str | Tensor, **options: Unpack[Options]) -> None:
    """Equal calls in eval mode give equal outputs."""
    _hold("deterministic-eval", _subject(module, inputs, options))


def assert_finite(module: Any, *inputs: str | Tensor, **options: Unpack[Options]) -> None:
    """No NaN and no infinity, also for inputs that are not small."""
    _hold("finite", _subject(module, inputs, options))


def assert_gradients_finite(module: Any, *inputs: str | Tensor, **options: Unpack[Options]) -> None:
    """Gradients of inputs and parameters are finite."""
    _hold("gradients-finite", _subject(module, inputs, options))


def assert_matches(
    module: Any,
    reference: Any,
    *inputs: str | Tensor,
    weights: Mapping[str, str] | str = "copied",
    **options: Unpack[Options],
) -> None:
    """Outputs and gradients equal the reference's, which is computed in float64.

    `weights`: "copied" gives both the same fresh weights, by names or by a map that is found and
    proven; a map `{"wq.weight": "part(qkv.weight, 0, 3)"}` says how; "kept" compares both with
    the weights they have.
    """
    if isinstance(weights, str) and weights not in ("copied", "kept"):
        hint = 'Write weights="copied", weights="kept" or a map of names.'
        raise Refused(f'weights="{weights}" is no way to give both the same weights', hint)
    subject = replace(
        _subject(module, inputs, options), reference=reference, keep=weights == "kept"
    )
    if not isinstance(weights, str):
        declared = replace(subject.contract, weights=dict(weights))
        subject = replace(subject, contract=declared)
    _hold("matches-reference", subject)
    if _learns(subject):
        _hold("gradients-match", subject)


def _learns(subject: Subject) -> bool:
    """Whether there is anything to differentiate by."""
    floats = any(i.dtype == "float" and i.role == "data" for i in subject.contract.inputs)
    module = subject.module
    return floats or (isinstance(module, nn.Module) and any(True for _ in module.parameters()))


# ---------------------------------------------------------------- the verdict


def _hold(check: str, subject: Subject, *promises: str) -> None:
    """Raises where the check fails or cannot be made."""
    found = examine(with_promises(subject, *promises), check)
    result = found.result
    if result.outcome == "failed":
        _fail(check, subject, found)
    if result.outcome != "passed":
        raise Refused(f"{check} could not be checked: {result.message}", _way_out(result))


def _fail(check: str, subject: Subject, found: Examined) -> NoReturn:
    from attnlab.render.finding import Unheld, as_text

    result = found.result
    also = "" if result.id == check else f"; {check} fails too, and may follow from it"
    page = Unheld(
        result=result, target=_place(subject.module), seed=subject.seed, trace=found.trace
    )
    raise PropertyFailed(
        f"{result.id}: {result.message}{also}", as_text(page, PropertyFailed.width), subject.seed
    )


def _way_out(result: CheckResult) -> str:
    ways = {
        "no-weights": 'Say how with weights={...}, or compare as they are: weights="kept".',
        "internal": "This is a fault of attnlab; please report it.",
    }
    return ways.get(result.reason, "Say more of the inputs, or use another assertion.")


def _place(module: Any) -> str:
    """`Net.forward, model.py:12`."""
    target = module.forward if isinstance(module, nn.Module) else module
    name = getattr(target, "__qualname__", type(module).__name__)
    try:
        file, line = inspect.getsourcefile(target), inspect.getsourcelines(target)[1]
    except (OSError, TypeError):
        return str(name)
    return f"{name}, {shown_path(Path(file))}:{line}" if file else str(name)


# ---------------------------------------------------------------- the contract


def _subject(module: Any, given: tuple[str | Tensor, ...], options: Options) -> Subject:
    """How the module is fed, from what was said of it."""
    _known(options)
    if not callable(module):
        raise Refused(f"a {type(module).__name__} cannot be called", "Give an nn.Module.")
    if isinstance(module, type):
        raise Refused(
            f"{module.__name__} is a class", f"Give one made of it: {module.__name__}(...)"
        )
    names = _names(module, len(given))
    inputs = tuple(
        parse_input(one) if isinstance(one, str) else _input(name, one)
        for name, one in zip(names, given, strict=False)
    )
    if not inputs:
        raise Refused("no input is said", 'Add one for each argument, such as "x: B S D".')
    contract = Contract(
        sizes=_sizes(inputs, given, options.get("sizes", {})),
        inputs=inputs,
        promises=options.get("promises", ()),
    )
    drawn = tuple(s for s in DRAWN if s not in options.get("sizes", {}))
    contract = replace(contract, vary=tuple(s for s in drawn if s in contract.sizes))
    subject = Subject(module, contract, _seed(options), options.get("pick"))
    return replace(subject, contract=replace(contract, output=_output(subject, options)))


def _known(options: Options) -> None:
    """A keyword that nobody reads would be a wish that is not heard."""
    for word in options:
        if word not in Options.__annotations__:
            hint = did_you_mean(word, Options.__annotations__) or (
                f"Keywords are {', '.join(Options.__annotations__)}; "
                'an input is a text without keyword: "x: B S D".'
            )
            raise Refused(f'"{word}" is no keyword of it', hint)
    for promise in options.get("promises", ()):
        if promise not in PROMISES:
            hint = did_you_mean(promise, PROMISES) or f"Promises are {', '.join(PROMISES)}."
            raise Refused(f'"{promise}" is no promise', hint)


def _seed(options: Options) -> int:
    said = options.get("seed", os.environ.get(SEED))
    if said is None:
        return secrets.randbits(31)
    if not str(said).isdecimal():
        raise Refused(f"{SEED}={said} is no seed", "Write a whole number.")
    return int(said)


def _names(module: Any, count: int) -> list[str]:
    """What `forward` calls its first arguments."""
    target = module.forward if isinstance(module, nn.Module) else module
    try:
        taken = list(inspect.signature(target).parameters.values())
    except (TypeError, ValueError):
        taken = []
    plain = [p.name for p in taken if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return [*plain, *(f"input{i}" for i in range(len(plain), count))][:count]


def _input(name: str, example: Any) -> Input:
    """An example tensor as an input: its axes by their number, a boolean one is a mask."""
    if not isinstance(example, Tensor):
        kind = type(example).__name__
        raise Refused(f"{name} is a {kind}", 'Give a text such as "x: B S D", or a tensor.')
    if example.dim() not in AXES:
        hint = 'Say its axes: "x: B S D E", and their sizes.'
        raise Refused(f"{name} has {example.dim()} axes, which have no usual names", hint)
    if example.dtype.is_floating_point:
        return Input(name=name, axes=AXES[example.dim()])
    if not str(example.dtype).endswith("bool"):
        return Input(name=name, axes=("B", "S")[-example.dim() :], dtype="int")
    hint = f'Say it: "{name}: B S S bool forbids" (True may not be attended) or "... allows".'
    raise Refused(f"{name} is a mask, and a tensor does not say what True means", hint)


def _sizes(
    inputs: tuple[Input, ...], given: tuple[str | Tensor, ...], said: Mapping[str, int]
) -> dict[str, int]:
    """Of every symbol: as said, as in the examples, or drawn."""
    found = dict(said)
    for spec, one in zip(inputs, given, strict=True):
        if isinstance(one, Tensor):
            shape = dict(zip(spec.axes, one.shape, strict=True))
            for symbol, size in shape.items():
                if said.get(symbol, size) != size and symbol not in DRAWN:
                    hint = "Give one of them: the size, or an example that has it."
                    raise Refused(
                        f"{symbol} is {said[symbol]} in sizes and {size} in {spec.name}", hint
                    )
            found |= {s: n for s, n in shape.items() if s not in (*DRAWN, *found)}
    known = with_hd({**{s: ROUNDS[0][s] for s in DRAWN}, **found})
    known = _ids(inputs, given) | known
    used = dict.fromkeys(s for spec in inputs for s in symbols_of(spec.axes))
    for symbol in used:
        if symbol not in known:
            hint = f'Add sizes={{"{symbol}": 16}}, with the size that the module was built for.'
            raise Refused(f"the size of {symbol} is not said", hint)
    return {s: n for s, n in known.items() if s in used or s in found or s == "V"}


def _ids(inputs: tuple[Input, ...], given: tuple[str | Tensor, ...]) -> dict[str, int]:
    """The number of ids that an example shows: a vocabulary may be a small one."""
    shown = [
        int(one.max().item()) + 1
        for spec, one in zip(inputs, given, strict=True)
        if isinstance(one, Tensor) and spec.dtype == "int" and one.numel()
    ]
    return {"V": max(shown)} if len(shown) == 1 and max(shown) > 1 else {}


def _output(subject: Subject, options: Options) -> tuple[str, ...]:
    """The output's axes: as said, or read off one call at sizes that differ."""
    if "output" in options:
        return tuple(options["output"].split())
    sizes = subject.contract.sizes
    try:
        out = output_of(subject, sizes)
    except Raised as error:
        place = f"{shown_path(Path(error.file))}:{error.line}" if error.line else ""
        raise PropertyFailed(f"the call raised {error}", place, subject.seed) from None
    if not isinstance(out, Tensor):
        hint = "Say which part is the output: pick=lambda out: out[0]"
        raise Refused(f"forward returned {out}, not one tensor", hint)
    first = subject.contract.inputs[0].axes
    return tuple(_symbol(n, first[i : i + 1], sizes) for i, n in enumerate(out.shape))


def _symbol(size: int, same: tuple[str, ...], sizes: Mapping[str, int]) -> str:
    """The symbol of a size: that of the same axis of the input, else the only one, else none."""
    if same and sizes.get(same[0]) == size:
        return same[0]
    found = [s for s, n in sizes.items() if n == size]
    return found[0] if len(found) == 1 else str(size)
