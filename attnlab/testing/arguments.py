"""Check the arguments of assertions before anything runs: a typing error is refused in one line,
and is not a failure of the module."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from attnlab.catalogue.contract_facts import PROMISES
from attnlab.catalogue.weight_expressions import Misfit, Term, parse
from attnlab.errors import Refused
from attnlab.records import Input
from attnlab.suggest import did_you_mean

SEEDS = 2**63  # torch takes no larger one
AXES = {1: ("D",), 2: ("S", "D"), 3: ("B", "S", "D"), 4: ("B", "H", "S", "hd")}  # of a tensor
IMAGE, CHANNELS = ("B", "C", "Y", "X"), (1, 3, 4)
RIGHT_SIZES = 'Sizes are whole numbers from 1 on, by symbol: sizes={"D": 16, "M": 128}.'
RIGHT_WEIGHTS = 'Write weights="copied", weights="kept" or {"wq.weight": "part(qkv.weight, 0, 3)"}.'


def must_be_known(options: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    """Refuse unknown keywords, and values of the wrong type; raises `Refused`."""
    for word in options:
        if word not in known:
            hint = did_you_mean(word, known) or (
                f'Keywords are {", ".join(known)}; an input is a text without keyword: "x: B S D".'
            )
            raise Refused(f'"{word}" is no keyword of it', hint)
    for promise in options.get("promises", ()):
        if promise not in PROMISES:
            hint = did_you_mean(promise, PROMISES) or f"Promises are {', '.join(PROMISES)}."
            raise Refused(f'"{promise}" is no promise', hint)
    must_be_sizes(options.get("sizes", {}))
    output = options.get("output", "")
    if not isinstance(output, str):
        raise Refused(f"output={output!r} is no text", 'Write its axes: output="B S D".')
    if not callable(options.get("pick", len)):
        raise Refused(
            f"pick={options['pick']!r} cannot be called", "Write pick=lambda out: out[0]."
        )


def must_be_called(module: Any) -> None:
    if not callable(module):
        raise Refused(f"a {type(module).__name__} cannot be called", "Give an nn.Module.")
    if isinstance(module, type):
        raise Refused(
            f"{module.__name__} is a class", f"Give one made of it: {module.__name__}(...)"
        )


def must_have_mask(inputs: Sequence[Input]) -> None:
    """Refuse inputs without a mask, and a mask for which the meaning of True is not given."""
    if any(spec.role == "mask" for spec in inputs):
        return
    for spec in inputs:
        if spec.dtype == "bool":
            axes = " ".join(spec.axes)
            raise Refused(
                f"{spec.name} is boolean, and nothing says what True means",
                f'Write "{spec.name}: {axes} bool forbids" (True may not be attended to), or '
                f'"{spec.name}: {axes} bool allows".',
            )
    raise Refused("no input is a mask", 'Add one, such as "mask: B S bool forbids".')


def must_be_sizes(sizes: Any) -> None:
    if not isinstance(sizes, Mapping):
        raise Refused(f"sizes={sizes!r} is no mapping", RIGHT_SIZES)
    for symbol, size in sizes.items():
        if not isinstance(symbol, str) or type(size) is not int or size < 1:
            raise Refused(f"sizes has {symbol!r}: {size!r}", RIGHT_SIZES)


def parse_seed(value: Any, name: str) -> int:
    """The seed of a keyword or an environment variable; raises `Refused`."""
    if isinstance(value, bool) or not str(value).isdecimal() or int(value) >= SEEDS:
        raise Refused(f"{name}={value} is no seed", "Write a whole number from 0 to 2**63 - 1.")
    return int(value)


def must_be_weights(weights: Any, mine: set[str], theirs: set[str]) -> None:
    """Refuse a map of weights with unknown parameters, or expressions that cannot be parsed.

    `mine` and `theirs` are the parameters of the module and of the reference.
    """
    if isinstance(weights, str):
        if weights not in ("copied", "kept"):
            raise Refused(f'weights="{weights}" is no way to give both the same', RIGHT_WEIGHTS)
        return
    if not isinstance(weights, Mapping):
        raise Refused(f"weights={weights!r} is no map", RIGHT_WEIGHTS)
    for name, made in weights.items():
        if not isinstance(name, str) or not isinstance(made, str):
            raise Refused(f"weights has {name!r}: {made!r}", RIGHT_WEIGHTS)
        if "#" not in name and name not in mine:
            hint = did_you_mean(name, mine) or f"It has {', '.join(sorted(mine))}."
            raise Refused(f"the module has no parameter {name}, which weights names", hint)
        try:
            used = names_in(parse(made))
        except Misfit as error:
            raise Refused(f"weights of {name}: {error}", RIGHT_WEIGHTS) from None
        for other in (n for n in used if "." in n and n not in theirs):
            hint = did_you_mean(other, theirs) or f"It has {', '.join(sorted(theirs))}."
            raise Refused(f"the reference has no parameter {other}, which weights names", hint)


def names_in(term: Term) -> set[str]:
    """The names of parameters and sizes in a parsed expression."""
    if isinstance(term, str):
        return {term}
    return set() if isinstance(term, int) else set().union(*map(names_in, term[1]))


def input_like(name: str, example: Any, module: Any) -> Input:
    """The input that an example tensor describes; its axes are named by their number.

    Raises `Refused` for a boolean tensor: it is a mask, and does not say what True means.
    """
    if not isinstance(example, Tensor):
        kind = type(example).__name__
        raise Refused(f"{name} is a {kind}", 'Give a text such as "x: B S D", or a tensor.')
    if example.is_complex() or example.is_sparse:
        raise Refused(
            f"{name} is {example.dtype} and {example.layout}", "Give real, dense numbers."
        )
    if example.dim() not in AXES:
        hint = 'Say its axes: "x: B S D E", and their sizes.'
        raise Refused(f"{name} has {example.dim()} axes, which have no usual names", hint)
    if example.dtype.is_floating_point and example.dim() == 4 and _takes_images(module, example):
        return Input(name=name, axes=IMAGE)
    if example.dtype.is_floating_point:
        return Input(name=name, axes=AXES[example.dim()])
    if not str(example.dtype).endswith("bool"):
        return Input(name=name, axes=("B", "S")[-example.dim() :], dtype="int")
    hint = f'Say it: "{name}: B S S bool forbids" (True may not be attended) or "... allows".'
    raise Refused(f"{name} is a mask, and a tensor does not say what True means", hint)


def _takes_images(module: Any, example: Tensor) -> bool:
    """Whether a 4-D example is a batch of images, whose size is fixed, and not heads."""
    layers = module.modules() if isinstance(module, nn.Module) else ()
    channels, height, width = example.shape[1:]
    square = channels in CHANNELS and height == width
    return square or any(isinstance(layer, (nn.Conv2d, nn.Unfold)) for layer in layers)
