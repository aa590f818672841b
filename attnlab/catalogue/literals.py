"""Parse typed values: numbers, booleans, quoted text, symbols of sizes, config objects."""

import math
import re
from typing import TypeVar

from attnlab.errors import Refused

V = TypeVar("V")
Scalar = str | int | float | bool

SYMBOL = r"[A-Za-z][A-Za-z0-9_]*"
NAME = r"[A-Za-z_][A-Za-z0-9_]*"


class Symbol(str):
    """The name of a size; a quoted text is a plain `str`."""

    __slots__ = ()


class Call(str):
    """A config object to construct in the candidate's process: `Config(n_embd=D)`."""

    __slots__ = ()


def parse_pairs(text: str, flag: str) -> dict[str, str]:
    """The `key=value` pairs of a flag; a comma inside quotes separates nothing."""
    found: dict[str, str] = {}
    value = rf"\"[^\"]*\"|'[^']*'|{NAME}\([^()]*\)|[^,\"'=()]+?"
    pair = re.compile(rf"\s*({NAME})\s*=\s*({value})\s*(?:,|$)")
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


def parse_literal(key: str, said: str, flag: str) -> Scalar:
    if said[0] in "\"'" and len(said) > 1 and said[-1] == said[0]:
        return said[1:-1]
    if re.fullmatch(rf"{NAME}\((?:\s*|{NAME}\s*=.*)\)", said, re.DOTALL):
        return Call(said)
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
    raise Refused(f"{flag}: {key}={said} is not a value that attnlab can pass", hint, flag)


def parse_argument_value(key: str, said: str, flag: str) -> Scalar | None:
    """`3`, `True`, `None`, `'fast'` or a symbol; raises `Refused`."""
    return None if said == "None" else parse_literal(key, said or "?", flag)


def plain_literal(value: V) -> V | str:
    """The value as records hold it: symbols and calls become `str`."""
    return str(value) if isinstance(value, (Symbol, Call)) else value


def check_size(key: str, value: str | Scalar, flag: str) -> None:
    if not isinstance(value, bool) and re.fullmatch(r"0*[1-9]\d{18,}", str(value)):
        hint = "A tensor has at most 2**63 - 1 elements: use a number of at most 18 digits."
        raise Refused(f"{flag}: {key}={str(value)[:12]}... is too large for a size", hint, flag)
    if isinstance(value, bool) or not re.fullmatch(r"[1-9]\d{0,17}", str(value)):
        hint = f'Write a whole number of elements, for example {flag} "{key}=12".'
        raise Refused(f"{flag}: {key}={value} is not a size", hint, flag)
