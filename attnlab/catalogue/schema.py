"""How a module is constructed and called: the tables of a contract.

`[sizes] [init] [inputs] [output] [contract]` stand in a challenge.toml and in the file of `--case`;
the flags `--init`, `--sizes` and `--input` say the same in one line each.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from attnlab.catalogue.contract_facts import PROMISES
from attnlab.catalogue.literals import (
    NAME,
    SYMBOL,
    Scalar,
    check_size,
    parse_argument_value,
    parse_literal,
    parse_pairs,
    plain_literal,
)
from attnlab.catalogue.toml_rules import (
    At,
    Document,
    InvalidValue,
    Rule,
    expected,
    fields_of,
    line,
    listing,
    mapping,
    matching,
    name,
    number,
    one_of,
    scalar,
    table,
    truth,
    whole,
)
from attnlab.catalogue.weight_expressions import NAMES, Misfit, parse
from attnlab.errors import Refused
from attnlab.records import Cache, Contract, Input, Position, Refusal
from attnlab.suggest import did_you_mean

LENGTHS = ("B", "S", "Sq", "Sk", "T", "L", "M")
FACTOR = rf"(?:{SYMBOL}|[1-9][0-9]*)"
AXIS = rf"{FACTOR}(?:\*{FACTOR})*"
KINDS = ("float", "int", "bool")
SIDES = ("forbids", "allows")
ROLES = ("segments", "positions")
WORDS = (*KINDS, *SIDES, *ROLES, "additive", "optional")
MASKS = ("causal", "random", "none", "empty-rows")
FORM = (
    '"AXES [float|int|bool] [forbids|allows] [optional]", such as "B S D", "B S S bool forbids" '
    'or "B S int segments"'
)


# ---------------------------------------------------------------- tables


def axes(value: Any) -> tuple[str, ...]:
    """`B S 3*D` as its axes."""
    found = tuple(line(value).split())
    for axis in found:
        if not re.fullmatch(AXIS, axis):
            raise InvalidValue(
                f' = "{value}": {axis} is not an axis', hint="Axes look like B, 3*D or 4."
            )
    return found


def input_fields(value: Any) -> dict[str, Any]:
    """`B S S bool forbids optional` as the fields of an `Input`, except its name.

    A number, a boolean, or text such as `= S` or `= 'fast'` is an argument that is not a tensor.
    """
    if isinstance(value, (bool, int, float)):
        return {"value": value}
    if isinstance(value, str) and value.lstrip().startswith("="):
        return {"value": parse_argument_value("argument", value.strip(" =\t"), "inputs")}
    words = line(value).split()
    flags = [word for word in words if word in WORDS]
    kinds, sides, roles = ([w for w in flags if w in some] for some in (KINDS, SIDES, ROLES))
    if len(set(flags)) < len(flags) or len(kinds) > 1 or len(sides + roles) > 1:
        raise InvalidValue(f' = "{value}": contradicts itself', hint=f"Write {FORM}.")
    for word, needed in (*((s, "bool") for s in sides), *((r, "int") for r in roles)):
        if kinds != [needed]:
            raise InvalidValue(
                f' = "{value}": {word} needs the word {needed}', hint=f"Write {FORM}."
            )
    if "additive" in flags and not sides:
        hint = 'A boolean mask may also be additive: "B S S bool forbids additive".'
        raise InvalidValue(f' = "{value}": additive needs forbids or allows', hint=hint)
    if len(flags) == len(words):
        raise InvalidValue(f' = "{value}": names no axes', hint=f"Write {FORM}.")
    return {
        "axes": axes(" ".join(word for word in words if word not in WORDS)),
        "dtype": kinds[0] if kinds else "float",
        "role": "mask" if sides else roles[0] if roles else "data",
        "forbids": sides != ["allows"],
        "additive": "additive" in flags,
        "optional": "optional" in flags,
    }


SIZES = mapping(SYMBOL, "a symbol such as B or hd", whole(1))
SOME_SIZES = mapping(SYMBOL, "a symbol such as B or hd", whole(1), least=1)
SYMBOLS = listing(matching(SYMBOL, "a symbol of [sizes]"))
BUFFERS = listing(matching(rf"{NAME}(\.[A-Za-z0-9_]+)*", "the name of a buffer"))
REFUSAL = fields_of(Refusal, {"sizes": SOME_SIZES, "error": name}, required=("sizes",))
POSITION = fields_of(
    Position,
    {
        "kind": one_of("sinusoidal", "rotary", "alibi", "t5", "learned", "other"),
        "form": one_of("returned", "added", "rotated", "bias"),
        "base": number,
        "layout": one_of("interleaved", "half", "any"),
        "causal": truth,
        "buckets": whole(2),
        "distance": whole(1),
        "grid": listing(matching(SYMBOL, "a symbol of [sizes]"), 2, 2),
        "beyond": one_of("extend", "error"),
    },
)
DOTTED = matching(rf"{NAME}(\.[A-Za-z0-9_]+)*", "the dotted name of a parameter or buffer")
DTYPES = ("float64", "bfloat16", "float16")
EXPRESSION = r"[\w.#(), ]+"


def weight_map(value: Any) -> dict[str, str]:
    """`wq.weight = "part(qkv.weight, 0, 3)"`; TOML reads the dots of a key as tables."""
    if not isinstance(value, dict):
        raise expected(value, "a table")
    found: dict[str, str] = {}
    for key, said in value.items():
        try:
            inner = weight_map(said) if isinstance(said, dict) else {"": _expression(said)}
        except InvalidValue as wrong:
            raise wrong.inside(key) from None
        found |= {f"{key}.{name}".rstrip("."): text for name, text in inner.items()}
    return found


def _expression(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(EXPRESSION, value):
        raise expected(value, 'an expression such as "cat(q.weight, k.weight)"')
    try:
        parse(value)
    except Misfit as misfit:
        hint = f"Functions are {', '.join(NAMES)}."
        raise InvalidValue(f' = "{value}" cannot be read', hint=f"{misfit}. {hint}") from None
    return value


CACHE = fields_of(
    Cache,
    {
        "form": one_of("returned", "given", "inner"),
        **dict.fromkeys(("argument", "new", "reset", "reorder"), name),
    },
)
TABLES: dict[str, Rule] = {
    "weights": weight_map,
    "sizes": SIZES,
    "init": mapping(NAME, "the name of a constructor argument", scalar),
    "inputs": mapping(NAME, "the name of an argument of forward", input_fields),
    "output": table({"axes": axes}, required=("axes",)),
    "contract": table(
        {
            "promises": listing(one_of(*PROMISES)),
            "mask": one_of(*MASKS),
            "vary": SYMBOLS,
            "multiples": SOME_SIZES,
            "buffers": BUFFERS,
            "defaults": mapping(NAME, "the name of a constructor argument", whole(1)),
            "extra_sizes": listing(SOME_SIZES),
            "refusals": listing(REFUSAL),
            "position": POSITION,
            "dtypes": listing(one_of(*DTYPES)),
            "padding_idx": whole(0),
            "tied": listing(listing(DOTTED, least=2)),
            "state_dict": listing(DOTTED),
            "forbidden": listing(line),
            "cache": CACHE,
        },
        renamed={"probes": "extra_sizes"},
    ),
}


def build_contract(found: dict[str, Any]) -> Contract:
    """The contract of the tables. Keys that are left out keep the record's defaults."""
    extra, fed = dict(found.get("contract", {})), found.get("inputs", {})
    if "mask" in extra:
        extra["example_mask"] = extra.pop("mask")
    return Contract(
        sizes=found.get("sizes", {}),
        init=found.get("init", {}),
        inputs=tuple(Input(name=k, **said) for k, said in fed.items() if "value" not in said),
        arguments={k: plain_literal(said["value"]) for k, said in fed.items() if "value" in said},
        output=found.get("output", {}).get("axes", ()),
        weights=found.get("weights", {}),
        **extra,
    )


def check_consistency(document: Document, contract: Contract) -> None:
    """Check that the tables agree with each other; raises `Unreadable`."""
    _check_symbols(document, contract)
    _check_defaults(document, contract)
    _check_multiples(document, contract)
    _check_cache(document, contract)
    _check_promises(document, contract)


def _check_symbols(document: Document, contract: Contract) -> None:
    """Every symbol has a size."""
    known = known_symbols(contract.sizes)
    for at, symbol in _used_symbols(document, contract):
        if symbol not in known:
            hint = did_you_mean(symbol, known) or f"Known symbols: {', '.join(known)}"
            raise document.error(at, f": {symbol} is not in [sizes]", hint)


def _check_defaults(document: Document, contract: Contract) -> None:
    """Defaults are of arguments at the end that a size is given for."""
    last = list(contract.init)[len(contract.init) - len(contract.defaults) :]
    for key in contract.defaults:
        if key not in last or contract.init[key] not in contract.sizes:
            hint = "Only the last arguments of [init] can be left out, and those that are a symbol."
            raise document.error(
                ("contract", "defaults", key), ": this argument cannot have a default", hint
            )


def _check_multiples(document: Document, contract: Contract) -> None:
    """The example's sizes are such multiples, and lengths are not: calls cut sequences anywhere."""
    sizes = contract.sizes
    for symbol, factor in contract.multiples.items():
        at: At = ("contract", "multiples", symbol)
        size = sizes[symbol] if symbol in sizes else sizes["D"] // sizes["H"]
        if symbol in LENGTHS:
            hint = "Checks cut sequences and batches anywhere; only widths can be multiples."
            raise document.error(at, f": {symbol} cannot be a multiple", hint)
        if size % factor:
            hint = f"The example of [sizes] has {symbol}={size}."
            raise document.error(at, f" = {factor}: the example is not a multiple", hint)


def _check_cache(document: Document, contract: Contract) -> None:
    """A module with a cache is causal: else no step could equal the full sequence."""
    masked = any(i.role == "mask" for i in contract.inputs)
    if contract.cache is not None and not masked and "causal" not in contract.promises:
        hint = 'Add promises = ["causal"] to [contract], or a mask to [inputs].'
        raise document.error(("contract", "cache"), ": a module with a cache is causal", hint)


def _check_promises(document: Document, contract: Contract) -> None:
    """A promise that adds to another one says nothing without it."""
    for index, promise in enumerate(contract.promises):
        other = PROMISES[promise].requires
        if other and other not in contract.promises:
            at: At = ("contract", "promises", index)
            raise document.error(
                at, f' = "{promise}": needs the promise {other}', f'Add "{other}".'
            )


def known_symbols(sizes: dict[str, int]) -> list[str]:
    """The symbols that have a value: those of `sizes`, and hd = D / H."""
    derived = "hd" not in sizes and {"D", "H"} <= set(sizes) and sizes["D"] % sizes["H"] == 0
    return [*sizes, "hd"] if derived else list(sizes)


def symbols_of(axes: Iterable[str]) -> list[str]:
    """The symbols in `axes`: `3*D` holds D."""
    return [s for axis in axes for s in axis.split("*") if not s.isdecimal()]


def _used_symbols(document: Document, contract: Contract) -> Iterator[tuple[At, str]]:
    for entry in contract.inputs:
        yield from ((("inputs", entry.name), s) for s in symbols_of(entry.axes))
    yield from ((("output", "axes"), s) for s in symbols_of(contract.output))
    for index, sizes in enumerate(contract.extra_sizes):
        yield from ((("contract", "extra_sizes", index, s), s) for s in sizes)
    for index, refusal in enumerate(contract.refusals):
        yield from ((("contract", "refusals", index, "sizes", s), s) for s in refusal.sizes)
    yield from ((("contract", "multiples", s), s) for s in contract.multiples)
    if contract.position is not None:
        yield from ((("contract", "position", "grid"), s) for s in contract.position.grid)
    shapes = (said.split() for said in contract.forbidden if " " in said)
    yield from ((("contract", "forbidden"), s) for shape in shapes for s in symbols_of(shape))
    if "vary" in document.data.get("contract", {}):
        yield from ((("contract", "vary"), s) for s in contract.vary)


# ---------------------------------------------------------------- flags


def parse_input(text: str) -> Input:
    """`x: B S D` of `--input`; raises `Refused`."""
    key, colon, said = text.partition(":")
    if not colon or not re.fullmatch(NAME, key.strip()):
        hint = f'Write "NAME: AXES", for example --input "x: B S D"; in full: NAME: {FORM}.'
        raise Refused(f'--input "{text}" names no argument of forward', hint, "--input")
    try:
        return Input(name=key.strip(), **input_fields(said))
    except InvalidValue as wrong:
        hint = wrong.hint or f"Write NAME: {FORM}."
        raise Refused(f'--input "{text}"{_after_value(wrong)}', hint, "--input") from None


def parse_argument(text: str) -> tuple[str, Scalar | None] | None:
    """`offset = 3` of `--input` as a name and a value; None where axes are given."""
    match = re.fullmatch(rf"\s*({NAME})\s*=\s*(.*?)\s*", text, re.DOTALL)
    return (match[1], parse_argument_value(match[1], match[2], "--input")) if match else None


def parse_sizes(text: str) -> dict[str, int]:
    """`D=182, H=7` of `--sizes`; raises `Refused`."""
    found = parse_pairs(text, "--sizes")
    for key, value in found.items():
        check_size(key, value, "--sizes")
    return {key: int(value) for key, value in found.items()}


def parse_init(text: str) -> dict[str, Scalar]:
    """`D=182, bias=False, act="gelu", width=D` of `--init`; raises `Refused`."""
    return {
        key: parse_literal(key, said, "--init") for key, said in parse_pairs(text, "--init").items()
    }


def _after_value(wrong: InvalidValue) -> str:
    """What is wrong, without the value: the flag has just been quoted."""
    return ":" + wrong.says.rpartition('":')[2] if '":' in wrong.says else wrong.says
