"""What a module is fed with, one argument in a line: tensors, containers of tensors, plain values.

The lines are those of `[inputs]` and of `--input`.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any

from attnlab.catalogue.literals import NAME, SYMBOL, Scalar, parse_argument_value
from attnlab.catalogue.toml_rules import InvalidValue, line
from attnlab.errors import Refused
from attnlab.records import Container, Input
from attnlab.suggest import either

FACTOR = rf"(?:{SYMBOL}|[1-9][0-9]*)"
AXIS = rf"{FACTOR}(?:\*{FACTOR})*"
KINDS = ("float", "int", "bool")
SIDES = ("forbids", "allows")
ROLES = ("segments", "positions", "lengths")
WORDS = (*KINDS, *SIDES, *ROLES, "additive", "optional")
FORM = (
    '"AXES [float|int|bool] [forbids|allows] [optional]", such as "B S D", "B S S bool forbids" '
    'or "B S int segments"'
)
CONTAINERS = ("tuple", "list", "dict")
CONTAINER_FORM = '"tuple(B H T hd, B H T hd)", "list(...)" or "dict(k=B H T hd, v=B H T hd)"'
DEEPEST = 2  # containers inside each other


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

    A number, a boolean, or text such as `= S` or `= 'fast'` is an argument that is not a tensor."""
    if isinstance(value, (bool, int, float)):
        return {"value": value}
    if isinstance(value, str) and value.lstrip().startswith("="):
        return {"value": parse_argument_value("argument", value.strip(" =\t"), "inputs")}
    return _part_fields(line(value))


def _part_fields(value: str) -> dict[str, Any]:
    """What `input_fields` gives for a tensor or a container, which may be a container's part."""
    if "(" in value or ")" in value:
        return _container_fields(value)
    words = value.split()
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


def _container_fields(value: str) -> dict[str, Any]:
    """`tuple(B H T hd, B H T hd)` as its kind and the fields of its parts, by their keys."""
    depths = list(accumulate((char == "(") - (char == ")") for char in value))
    if min(depths) < 0 or depths[-1]:
        raise _misread(value, "its parentheses do not match")
    if max(depths) > DEEPEST:
        raise _misread(value, "a container holds tensors, or containers of tensors")
    match = re.fullmatch(rf"({'|'.join(CONTAINERS)})\s*\((.*)\)", value)
    if not match:
        raise _misread(value, f"only {either(CONTAINERS)} can take parentheses")
    kind, inner = match.groups()
    parts: dict[str, Any] = {}
    for place, text in enumerate(re.split(r",(?![^(]*\))", inner)):
        key, said = _named_part(text)
        if not said:
            raise _misread(
                value, f"part {place + 1} is empty" if inner.strip() else "it has no parts"
            )
        if kind == "dict" and not key:
            raise _misread(value, f'"{said}" has no name')
        if kind != "dict" and key:
            raise _misread(value, f"only the parts of a dict have names, such as {key}")
        if key in parts:
            raise _misread(value, f"{key} is there twice")
        parts[key or str(place)] = _part_fields(said)
    return {"kind": kind, "parts": parts}


def _named_part(text: str) -> tuple[str, str]:
    """`k=B H T hd` as `k` and `B H T hd`; without a name, "" and the whole."""
    match = re.fullmatch(rf"\s*({NAME})\s*=(.*)", text)
    return (match[1], match[2].strip()) if match else ("", text.strip())


def _misread(value: str, why: str) -> InvalidValue:
    return InvalidValue(f' = "{value}": {why}', hint=f"Write {CONTAINER_FORM}.")


def declare_input(name: str, fields: dict[str, Any]) -> Iterator[Input | Container]:
    """The tensor `x`; of a container itself and its parts: `cache`, `cache.0`, `cache.1`."""
    if "parts" not in fields:
        yield Input(name=name, **fields)
        return
    yield Container(name=name, kind=fields["kind"], keys=tuple(fields["parts"]))
    for key, part in fields["parts"].items():
        yield from declare_input(f"{name}.{key}", part)


def separate(
    declared: Iterable[Input | Container],
) -> tuple[tuple[Input, ...], tuple[Container, ...]]:
    """The tensors and the containers of what was declared."""
    every = tuple(declared)
    return (
        tuple(entry for entry in every if isinstance(entry, Input)),
        tuple(entry for entry in every if isinstance(entry, Container)),
    )


# ---------------------------------------------------------------- flags


def parse_input(text: str) -> Input:
    """`x: B S D` of `--input`; raises `Refused`, also for a container."""
    first, *rest = parse_inputs(text)
    if rest or isinstance(first, Container):
        hint = "A container can be given to attnlab trace only; name a tensor for each argument."
        raise Refused(f'"{text}": one tensor is expected', hint, "--input")
    return first


def parse_inputs(text: str) -> tuple[Input | Container, ...]:
    """`x: B S D` or `cache: tuple(B H T hd, B H T hd)` of `--input`; raises `Refused`."""
    key, colon, said = text.partition(":")
    if not colon or not re.fullmatch(NAME, key.strip()):
        hint = f'Write "NAME: AXES", for example --input "x: B S D"; in full: NAME: {FORM}.'
        raise Refused(f'--input "{text}" names no argument of forward', hint, "--input")
    try:
        return tuple(declare_input(key.strip(), _part_fields(line(said))))
    except InvalidValue as wrong:
        hint = wrong.hint or f"Write NAME: {FORM}."
        raise Refused(f'--input "{text}"{_after_value(wrong)}', hint, "--input") from None


def parse_argument(text: str) -> tuple[str, Scalar | None] | None:
    """`offset = 3` of `--input` as a name and a value; None where axes are given."""
    match = re.fullmatch(rf"\s*({NAME})\s*=\s*(.*?)\s*", text, re.DOTALL)
    return (match[1], parse_argument_value(match[1], match[2], "--input")) if match else None


def _after_value(wrong: InvalidValue) -> str:
    """What is wrong, without the value: the flag has just been quoted."""
    return ":" + wrong.says.rpartition('":')[2] if '":' in wrong.says else wrong.says
