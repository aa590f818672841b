"""The grader's checks for a module of your own, in your own tests.

    from attnlab.testing.assertions import assert_batch_independent, assert_causal

    def test_decoder():
        model = Decoder(d_model=16, heads=4)
        assert_causal(model, "x: B S D", sizes={"D": 16})
        assert_batch_independent(model, torch.randn(2, 5, 16))

Describe inputs as in `attnlab trace --input`, one text for each argument of `forward`, or give
example tensors. Symbols in `sizes` are fixed; batch and lengths are drawn, several times. `M` in
`sizes` is the longest sequence that the module takes, `V` the number of ids. The module is not
changed: a copy of it is checked in float32 on the CPU.

A property that does not hold raises `PropertyFailed`, an AssertionError. A property that could not
be checked raises `Refused`: it has not passed.
"""

import inspect
import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn, TypedDict, Unpack

from torch import Tensor, nn

from attnlab.candidate.host import Raised
from attnlab.catalogue.inputs import parse_input
from attnlab.catalogue.schema import symbols_of
from attnlab.errors import PropertyFailed, Refused
from attnlab.files import shown_path
from attnlab.grading.in_process import (
    Examined,
    Subject,
    differences,
    examine,
    is_causal,
    output_of,
    with_promises,
)
from attnlab.probe.inputs.sizes import LONG, ROUNDS, within
from attnlab.records import CheckResult, Contract, Input
from attnlab.sizes import with_head_dim
from attnlab.testing.arguments import (
    input_like,
    must_be_called,
    must_be_known,
    must_be_weights,
    must_have_mask,
    parse_seed,
)

SEED = "ATTNLAB_SEED"  # the environment variable that repeats a run
COMPARING = ("matches-reference", "gradients-match")  # of which the line is looked for
OTHER = {"B": 4, "S": 6, "Sq": 6, "Sk": 11, "T": 14, "L": 15}  # for a second look at the output
DRAWN = tuple(symbol for symbol in ("B", "S", "Sq", "Sk", "T", "L") if symbol in LONG)


class Options(TypedDict, total=False):
    """The keywords of every assertion."""

    sizes: Mapping[str, int]  # of the symbols that the module fixes: {"D": 16, "M": 128}
    output: str  # the axes of the output; by default read off a call
    pick: Callable[[Any], Tensor]  # the output, where forward returns more: `lambda out: out[0]`
    promises: tuple[str, ...]  # other promises, as in docs/challenge-format.md: ("dropout",)
    seed: int


def assert_causal(module: Any, *inputs: str | Tensor, **options: Unpack[Options]) -> None:
    """No output depends on later inputs; a module with a mask gets the causal mask."""
    _hold("causality", _subject(module, inputs, options), "causal")


def assert_batch_independent(
    module: Any, *inputs: str | Tensor, **options: Unpack[Options]
) -> None:
    """The output of a sample does not depend on other samples of the batch."""
    _hold("batch-independence", _subject(module, inputs, options))


def assert_padding_invariant(
    module: Any, *inputs: str | Tensor, **options: Unpack[Options]
) -> None:
    """Masked padding of any length does not change the output."""
    subject = _subject(module, inputs, options)
    must_have_mask(subject.contract.inputs)
    _hold("padding-invariance", subject)


def assert_permutation_equivariant(
    module: Any, *inputs: str | Tensor, **options: Unpack[Options]
) -> None:
    """Permuted positions give permuted outputs: the module ignores their order."""
    _hold("permutation-equivariance", _subject(module, inputs, options), "averaging")


def assert_mask_effective(module: Any, *inputs: str | Tensor, **options: Unpack[Options]) -> None:
    """Masked keys do not influence the output, and all others do. Give promises=("local",) for a
    module with a window, which hides more."""
    subject = _subject(module, inputs, options)
    must_have_mask(subject.contract.inputs)
    _hold("mask-effect", subject)
    if "local" not in subject.contract.promises:
        _hold("reach", subject)


def assert_deterministic(module: Any, *inputs: str | Tensor, **options: Unpack[Options]) -> None:
    """Equal calls in eval mode give equal outputs."""
    _hold("deterministic-eval", _subject(module, inputs, options))


def assert_finite(module: Any, *inputs: str | Tensor, **options: Unpack[Options]) -> None:
    """No NaN and no infinity, also for inputs that are not small."""
    _hold("finite", _subject(module, inputs, options))


def assert_gradients_finite(module: Any, *inputs: str | Tensor, **options: Unpack[Options]) -> None:
    """Gradients of inputs and parameters are finite."""
    _hold("gradients-finite", _subject(module, inputs, options))


def assert_gradients_correct(
    module: Any, *inputs: str | Tensor, **options: Unpack[Options]
) -> None:
    """Gradients are the slopes of the output, by central differences in float64."""
    _hold("gradcheck", _subject(module, inputs, options))


def assert_matches(
    module: Any,
    reference: Any,
    *inputs: str | Tensor,
    weights: Mapping[str, str] | str = "copied",
    **options: Unpack[Options],
) -> None:
    """Outputs and gradients equal those of the reference, which is computed in float64.

    `weights`: "copied" draws weights and gives them to both, matched by name or by a map that is
    found and proven; `{"wq.weight": "part(qkv.weight, 0, 3)"}` is such a map; "kept" compares
    them with the weights they have.
    """
    subject = compared_subject(module, reference, inputs, weights, options)
    _hold("matches-reference", subject)
    if _learns(subject):
        _hold("gradients-match", subject)


def compared_subject(
    module: Any,
    reference: Any,
    inputs: tuple[str | Tensor, ...],
    weights: Mapping[str, str] | str,
    options: Options,
) -> Subject:
    """A module beside its reference, fed and given weights as `assert_matches` says."""
    must_be_called(reference)
    must_be_weights(weights, _parameters(module), _parameters(reference))
    subject = replace(
        _subject(module, inputs, options), reference=reference, keep=weights == "kept"
    )
    if isinstance(weights, str):
        return subject
    return replace(subject, contract=replace(subject.contract, weights=dict(weights)))


def _learns(subject: Subject) -> bool:
    """Whether an input or a parameter can have a gradient."""
    floats = any(i.dtype == "float" and i.role == "data" for i in subject.contract.inputs)
    module = subject.module
    return floats or (isinstance(module, nn.Module) and any(True for _ in module.parameters()))


# ---------------------------------------------------------------- the verdict


def _hold(check: str, subject: Subject, *promises: str) -> None:
    """Run a check; raises `PropertyFailed` if it fails, `Refused` if it cannot be run."""
    found = examine(with_promises(subject, *promises), check)
    result = found.result
    if result.outcome == "failed":
        _fail(check, subject, found)
    if result.outcome != "passed":
        raise Refused(f"{check} could not be checked: {result.message}", _way_out(result))


def _fail(check: str, subject: Subject, found: Examined) -> NoReturn:
    from attnlab.render.finding import PropertyPage, as_text

    result = found.result
    diff = differences(subject) if check in COMPARING else None
    if diff and diff.diagnosis:
        first = diff.diagnosis[0]
        result = replace(result, advice=f"Look at {first.file}:{first.line}.")
    also = "" if result.id == check else f"; {check} fails too, and may follow from it"
    page = PropertyPage(
        result=result,
        target=_place(subject.module),
        seed=subject.seed,
        trace=found.trace,
        diff=diff,
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
    """The module with the contract that inputs and keywords describe."""
    must_be_known(options, Options.__annotations__)
    must_be_called(module)
    names = _names(module, len(given))
    inputs = tuple(
        parse_input(one) if isinstance(one, str) else input_like(name, one, module)
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
    subject = replace(subject, contract=replace(contract, output=_output(subject, options)))
    masked = any(i.role == "mask" for i in inputs)
    return with_promises(subject, "causal") if masked and is_causal(subject) else subject


def _seed(options: Options) -> int:
    if "seed" in options:
        return parse_seed(options["seed"], "seed")
    said = os.environ.get(SEED)
    return secrets.randbits(31) if said is None else parse_seed(said, SEED)


def _parameters(module: Any) -> set[str]:
    named = module.named_parameters() if isinstance(module, nn.Module) else ()
    return {name for name, _ in named}


def _names(module: Any, count: int) -> list[str]:
    """The names of the first arguments of `forward`."""
    target = module.forward if isinstance(module, nn.Module) else module
    try:
        taken = list(inspect.signature(target).parameters.values())
    except (TypeError, ValueError):
        taken = []
    plain = [p.name for p in taken if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return [*plain, *(f"input{i}" for i in range(len(plain), count))][:count]


def _sizes(
    inputs: tuple[Input, ...], given: tuple[str | Tensor, ...], said: Mapping[str, int]
) -> dict[str, int]:
    """The size of every symbol: as given, as in the examples, or drawn."""
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
    known = with_head_dim({**{s: ROUNDS[0][s] for s in DRAWN}, **found})
    known = _ids(inputs, given) | known
    used = dict.fromkeys(s for spec in inputs for s in symbols_of(spec.axes))
    for symbol in used:
        if symbol not in known:
            hint = f'Add sizes={{"{symbol}": 16}}, with the size that the module was built for.'
            raise Refused(f"the size of {symbol} is not said", hint)
    return {s: n for s, n in known.items() if s in used or s in found or s == "V"}


def _ids(inputs: tuple[Input, ...], given: tuple[str | Tensor, ...]) -> dict[str, int]:
    """The number of ids in an example: the vocabulary may be small."""
    shown = [
        int(one.max().item()) + 1
        for spec, one in zip(inputs, given, strict=True)
        if isinstance(one, Tensor) and spec.dtype == "int" and one.numel()
    ]
    return {"V": max(shown)} if len(shown) == 1 and max(shown) > 1 else {}


def _output(subject: Subject, options: Options) -> tuple[str, ...]:
    """The axes of the output: as given, or read off two calls with other sizes."""
    sizes = subject.contract.sizes
    if "output" in options:
        axes = tuple(options["output"].split())
        for symbol in symbols_of(axes):
            if symbol not in with_head_dim(sizes):
                hint = f"Sizes are known of {', '.join(with_head_dim(sizes))}."
                raise Refused(f"the size of {symbol} in output is not said", hint)
        return axes
    first = subject.contract.inputs[0].axes
    other = {s: OTHER.get(s, n) if s in subject.contract.vary else n for s, n in sizes.items()}
    shape = _shape(subject, sizes)
    try:
        again = _shape(subject, within(with_head_dim(other)))
    except PropertyFailed:  # its lengths are fixed, or it fails: the checks describe that better
        again, other = shape, sizes
    if len(shape) != len(again):
        raise Refused(
            "the output has another number of axes at other sizes", 'Say it: output="B S"'
        )
    pairs = zip(shape, again, strict=True)
    return tuple(_symbol(pair, first[i : i + 1], sizes, other) for i, pair in enumerate(pairs))


def _shape(subject: Subject, sizes: Mapping[str, int]) -> tuple[int, ...]:
    try:
        out = output_of(subject, dict(sizes))
    except Raised as error:
        place = f"{shown_path(Path(error.file))}:{error.line}" if error.line else ""
        raise PropertyFailed(f"the call raised {error}", place, subject.seed) from None
    if not isinstance(out, Tensor):
        hint = "Say which part is the output: pick=lambda out: out[0]"
        raise Refused(f"forward returned {out}, not one tensor", hint)
    return tuple(out.shape)


def _symbol(
    pair: tuple[int, int], same: tuple[str, ...], one: Mapping[str, int], other: Mapping[str, int]
) -> str:
    """The symbol with both sizes: that of the same axis of the input, or the only one; or the size
    itself."""
    found = [s for s in one if (one[s], other[s]) == pair]
    if same and same[0] in found:
        return same[0]
    return found[0] if len(found) == 1 else str(pair[0])
