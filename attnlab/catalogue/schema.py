"""How a module is constructed and called: the tables of a contract.

`[sizes] [init] [inputs] [output] [contract]` stand in a challenge.toml and in the file of `--case`;
the flags `--init`, `--sizes` and `--input` say the same in one line each.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from attnlab.catalogue.contract_facts import PROMISES
from attnlab.catalogue.inputs import axes, declare_input, input_fields, separate
from attnlab.catalogue.literals import (
    NAME,
    SYMBOL,
    Scalar,
    check_size,
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
from attnlab.records import Cache, Contract, Position, Refusal
from attnlab.suggest import did_you_mean

LENGTHS = ("B", "S", "Sq", "Sk", "T", "L", "M")
MASKS = ("causal", "random", "none", "empty-rows")


# ---------------------------------------------------------------- tables


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
        "most": matching(SYMBOL, "a symbol of [sizes]"),
        "in_place": truth,
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
    tensors = ((k, said) for k, said in fed.items() if "value" not in said)
    inputs, containers = separate(e for k, said in tensors for e in declare_input(k, said))
    return Contract(
        sizes=found.get("sizes", {}),
        init=found.get("init", {}),
        inputs=inputs,
        containers=containers,
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


def parse_sizes(text: str, flag: str = "--sizes") -> dict[str, int]:
    """`D=182, H=7` of a flag; raises `Refused`."""
    found = parse_pairs(text, flag)
    for key, value in found.items():
        check_size(key, value, flag)
    return {key: int(value) for key, value in found.items()}


def parse_init(text: str) -> dict[str, Scalar]:
    """`D=182, bias=False, act="gelu", width=D` of `--init`; raises `Refused`."""
    return {
        key: parse_literal(key, said, "--init") for key, said in parse_pairs(text, "--init").items()
    }
