"""How a module is built and fed: the tables `[sizes] [init] [inputs] [output] [contract]`.

A challenge.toml and the file of `--case` share them; the flags `--init`, `--sizes` and `--input`
say the same in one line each.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from typing import Any

from attnlab.errors import Refused
from attnlab.near import did_you_mean
from attnlab.records import Cache, Contract, Input, Position, Refusal
from attnlab.tables import (
    At,
    Document,
    Rule,
    Wrong,
    line,
    listing,
    mapping,
    matching,
    name,
    number,
    one_of,
    scalar,
    table,
    whole,
)

Scalar = str | int | float | bool

SYMBOL = r"[A-Za-z][A-Za-z0-9_]*"
NAME = r"[A-Za-z_][A-Za-z0-9_]*"
FACTOR = rf"(?:{SYMBOL}|[1-9][0-9]*)"
AXIS = rf"{FACTOR}(?:\*{FACTOR})*"
KINDS = ("float", "int", "bool")
SIDES = ("forbids", "allows")
ROLES = ("segments", "positions")
WORDS = (*KINDS, *SIDES, *ROLES, "additive", "optional")
MASKS = ("causal", "random", "none", "empty-rows")
PROMISES = (
    "causal",
    "averaging",
    "empty-rows",
    "dropout",
    "local",
    "scaled",
    "nan-safe",
)
FORM = (
    '"AXES [float|int|bool] [forbids|allows] [optional]", such as "B S D", "B S S bool forbids" '
    'or "B S int segments"'
)


class Symbol(str):
    """The name of a size, where a text in quotes would be a value."""

    __slots__ = ()


# ---------------------------------------------------------------- tables


def axes(value: Any) -> tuple[str, ...]:
    """`B S 3*D` as its axes."""
    found = tuple(line(value).split())
    for axis in found:
        if not re.fullmatch(AXIS, axis):
            raise Wrong(f' = "{value}": {axis} is no axis', hint="Axes look like B, 3*D or 4.")
    return found


def feed(value: Any) -> dict[str, Any]:
    """`B S S bool forbids optional` as the fields of an `Input`, but for its name."""
    words = line(value).split()
    flags = [word for word in words if word in WORDS]
    kinds, sides, roles = ([w for w in flags if w in some] for some in (KINDS, SIDES, ROLES))
    if len(set(flags)) < len(flags) or len(kinds) > 1 or len(sides + roles) > 1:
        raise Wrong(f' = "{value}": says two things at once', hint=f"Write {FORM}.")
    for word, needed in (*((s, "bool") for s in sides), *((r, "int") for r in roles)):
        if kinds != [needed]:
            raise Wrong(f' = "{value}": {word} needs the word {needed}', hint=f"Write {FORM}.")
    if "additive" in flags and not sides:
        hint = 'Say of a boolean mask that floats are taken too: "B S S bool forbids additive".'
        raise Wrong(f' = "{value}": additive needs forbids or allows', hint=hint)
    if len(flags) == len(words):
        raise Wrong(f' = "{value}": names no axes', hint=f"Write {FORM}.")
    return {
        "axes": axes(" ".join(word for word in words if word not in WORDS)),
        "dtype": kinds[0] if kinds else "float",
        "role": "mask" if sides else roles[0] if roles else "data",
        "forbids": sides != ["allows"],
        "additive": "additive" in flags,
        "optional": "optional" in flags,
    }


SIZES = mapping(SYMBOL, "a symbol such as B or hd", whole(1))
PROBE = mapping(SYMBOL, "a symbol such as B or hd", whole(1), least=1)
SYMBOLS = listing(matching(SYMBOL, "a symbol of [sizes]"))
BUFFERS = listing(matching(rf"{NAME}(\.[A-Za-z0-9_]+)*", "the name of a buffer"))
REFUSAL = table({"sizes": PROBE, "error": name}, required=("sizes",))
POSITION = table(
    {"kind": one_of("sinusoidal"), "form": one_of("returned", "added"), "base": number}
)
CACHE = table(
    {
        "form": one_of("returned", "given", "inner"),
        **dict.fromkeys(("argument", "new", "reset", "reorder"), name),
    }
)
TABLES: dict[str, Rule] = {
    "sizes": SIZES,
    "init": mapping(NAME, "the name of a constructor argument", scalar),
    "inputs": mapping(NAME, "the name of an argument of forward", feed),
    "output": table({"axes": axes}, required=("axes",)),
    "contract": table(
        {
            "promises": listing(one_of(*PROMISES)),
            "mask": one_of(*MASKS),
            "vary": SYMBOLS,
            "buffers": BUFFERS,
            "probes": listing(PROBE),
            "refusals": listing(REFUSAL),
            "position": POSITION,
            "cache": CACHE,
        }
    ),
}


def build(found: dict[str, Any]) -> Contract:
    """The contract that the tables state. What they leave out keeps the record's default."""
    extra = dict(found.get("contract", {}))
    if "mask" in extra:
        extra["example_mask"] = extra.pop("mask")
    if "refusals" in extra:
        extra["refusals"] = tuple(Refusal(**refusal) for refusal in extra["refusals"])
    if "position" in extra:
        extra["position"] = Position(**extra["position"])
    if "cache" in extra:
        extra["cache"] = Cache(**extra["cache"])
    return Contract(
        sizes=found.get("sizes", {}),
        init=found.get("init", {}),
        inputs=tuple(Input(name=key, **said) for key, said in found.get("inputs", {}).items()),
        output=found.get("output", {}).get("axes", ()),
        **extra,
    )


def must_know_symbols(document: Document, contract: Contract) -> None:
    """Every symbol has a size; raises `Unreadable` at the first that has none."""
    known = known_symbols(contract.sizes)
    for at, symbol in _uses(document, contract):
        if symbol not in known:
            hint = did_you_mean(symbol, known) or f"Known symbols: {', '.join(known)}"
            raise document.error(at, f": {symbol} is not in [sizes]", hint)


def known_symbols(sizes: dict[str, int]) -> list[str]:
    """The symbols that have a value: those of `sizes`, and hd = D / H."""
    derived = "hd" not in sizes and {"D", "H"} <= set(sizes) and sizes["D"] % sizes["H"] == 0
    return [*sizes, "hd"] if derived else list(sizes)


def symbols_of(axes: Iterable[str]) -> list[str]:
    """The symbols in `axes`: `3*D` holds D."""
    return [s for axis in axes for s in axis.split("*") if not s.isdecimal()]


def _uses(document: Document, contract: Contract) -> Iterator[tuple[At, str]]:
    for entry in contract.inputs:
        yield from ((("inputs", entry.name), s) for s in symbols_of(entry.axes))
    yield from ((("output", "axes"), s) for s in symbols_of(contract.output))
    for index, probe in enumerate(contract.probes):
        yield from ((("contract", "probes", index, s), s) for s in probe)
    for index, refusal in enumerate(contract.refusals):
        yield from ((("contract", "refusals", index, "sizes", s), s) for s in refusal.sizes)
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
        return Input(name=key.strip(), **feed(said))
    except Wrong as wrong:
        hint = wrong.hint or f"Write NAME: {FORM}."
        raise Refused(f'--input "{text}"{_after_value(wrong)}', hint, "--input") from None


def parse_sizes(text: str) -> dict[str, int]:
    """`D=182, H=7` of `--sizes`; raises `Refused`."""
    found = _pairs(text, "--sizes")
    for key, value in found.items():
        must_be_size(key, value, "--sizes")
    return {key: int(value) for key, value in found.items()}


def must_be_size(key: str, value: str | Scalar, flag: str) -> None:
    if isinstance(value, bool) or not re.fullmatch(r"[1-9]\d*", str(value)):
        hint = f'Write a whole number of elements, for example {flag} "{key}=12".'
        raise Refused(f"{flag}: {key}={value} is no size", hint, flag)


def parse_init(text: str) -> dict[str, Scalar]:
    """`D=182, bias=False, act="gelu", width=D` of `--init`; raises `Refused`."""
    return {key: _literal(key, said) for key, said in _pairs(text, "--init").items()}


def _pairs(text: str, flag: str) -> dict[str, str]:
    """The `key=value` pairs of a flag; a comma inside quotes separates nothing."""
    found: dict[str, str] = {}
    pair = re.compile(rf"\s*({NAME})\s*=\s*(\"[^\"]*\"|'[^']*'|[^,\"'=]+?)\s*(?:,|$)")
    start = 0
    while text[start:].strip(" ,"):
        match = pair.match(text, start)
        if not match:
            hint = f'Write NAME=VALUE pairs with commas between, such as {flag} "D=182, H=7".'
            raise Refused(f"{flag}: cannot read {text[start:].strip()!r}", hint, flag)
        if match[1] in found:
            raise Refused(f"{flag}: {match[1]} is given twice", "Keep one of them.", flag)
        found[match[1]] = match[2]
        start = match.end()
    return found


def _literal(key: str, said: str) -> Scalar:
    if said[0] in "\"'":
        return said[1:-1]
    if said.lower() in ("true", "false"):
        return said.lower() == "true"
    for kind in (int, float):
        try:
            value = kind(said)
        except ValueError:
            continue
        if math.isfinite(value):
            return value
    if re.fullmatch(SYMBOL, said) and said not in ("None", "inf", "nan"):
        return Symbol(said)
    hint = "Values are numbers, True, False, text in quotes, or the symbol of a size such as D."
    if said == "None":
        hint = f"Leave {key} out to keep its default."
    raise Refused(f"--init: {key}={said} is no value attnlab can pass", hint, "--init")


def _after_value(wrong: Wrong) -> str:
    """What is wrong, without the value: the flag has just been quoted."""
    return ":" + wrong.says.rpartition('":')[2] if '":' in wrong.says else wrong.says
