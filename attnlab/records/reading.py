"""Reads records from JSON; what does not fit their types is refused.

What a type takes is found out when its first value is met: a grade holds few of the classes that a
report may hold, and does not wait for the others.
"""

from __future__ import annotations

import json
import math
from dataclasses import Field, fields, is_dataclass
from functools import cache, partial
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from attnlab.records.base import default

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    # Of a value, by its type in JSON: what makes the value of it, None where it is that already.
    Forms = Mapping[type, Callable[[Any], Any] | None]

R = TypeVar("R")
NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def from_json(kind: type[R], text: str | bytes | bytearray) -> R:
    """The record of `kind` in `text`; raises `ValueError` where it does not fit."""
    text = text if isinstance(text, str) else str(text, "utf-8")
    try:
        value = json.loads(text, parse_constant=_refuse)
        if not text.isascii() or "\\ud" in text.lower():
            json.dumps(value, ensure_ascii=False).encode()  # half a surrogate pair is no text
        found: R = _read(_forms(cast("Any", kind)), value)
    except KeyError as error:
        raise ValueError(f"Expected {kind}, not {error}") from None
    except (RecursionError, OverflowError) as error:
        raise ValueError(f"Invalid: {error}") from None
    return found


def _refuse(constant: str) -> None:
    raise ValueError(f"Invalid: {constant} is no strict JSON")


def _read(forms: Forms, value: Any) -> Any:
    """Raises `KeyError` where it is of another form."""
    make = forms[type(value)]
    return value if make is None else make(value)


@cache
def _forms(kind: Any) -> Forms:  # noqa: PLR0911  a return for each kind
    origin, args = get_origin(kind) or kind, get_args(kind)
    if is_dataclass(origin):
        return {dict: _record_reader(origin, args)}
    if origin in (Union, UnionType):  # a number is read as int or float, whichever it is
        ordered = sorted(args, key=lambda each: each is not float)
        return {form: make for each in ordered for form, make in _forms(each).items()}
    if origin is Literal:
        return {str: {each: each for each in args}.__getitem__}
    if origin is dict:
        return {dict: partial(_read_dict, _forms(args[1]))}
    if origin is tuple and args[-1] is not ...:
        return {list: partial(_read_row, tuple(map(_forms, args)))}
    if origin in (tuple, list, frozenset):
        return {list: partial(_read_all, origin, _forms(args[0]))}
    if kind is float:
        return {float: None, int: float, str: NUMBERS.__getitem__}
    assert kind in (str, int, bool, NoneType), kind
    return {kind: None}


def _read_all(make: Callable[[Any], Any], forms: Forms, values: Sequence[Any]) -> Any:
    if all(forms[form] is None for form in set(map(type, values))):  # long rows of numbers
        return make(values)
    return make([_read(forms, value) for value in values])


def _read_row(forms: Sequence[Forms], values: Sequence[Any]) -> tuple[Any, ...]:
    if len(values) != len(forms):
        raise ValueError(f"Expected {len(forms)} values, not {len(values)}")
    return tuple(map(_read, forms, values))


def _read_dict(forms: Forms, values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _read(forms, value) for name, value in values.items()}


def _record_reader(kind: Any, args: tuple[Any, ...]) -> Callable[[Mapping[str, Any]], Any]:
    @cache  # asked for with the first value: a record may hold others of its kind
    def field_forms() -> list[tuple[str, Forms, Callable[[Any, Any], None], Field[Any]]]:
        types = get_type_hints(kind)
        of = dict(zip(getattr(kind, "__parameters__", ()), args, strict=True))
        return [
            (f.name, _forms(_fill_in(types[f.name], of)), getattr(kind, f.name).__set__, f)
            for f in fields(kind)
        ]

    def read(values: Mapping[str, Any]) -> Any:
        made = object.__new__(kind)
        for name, forms, put, of in field_forms():
            try:
                put(made, _read(forms, values[name]) if name in values else default(made, of))
            except KeyError:
                what, shown = f"{kind.__name__}.{name}", repr(values[name])[:60]
                raise ValueError(f"Expected another {what}, not {shown}") from None
            except TypeError as error:  # it has no default
                raise ValueError(f"{error}, which is missing") from None
        return made

    return read


def _fill_in(kind: Any, of: Mapping[Any, Any]) -> Any:
    """The type with what its variables stand for."""
    if variables := getattr(kind, "__parameters__", ()):
        return kind[tuple(of[each] for each in variables)]
    return of.get(kind, kind) if isinstance(kind, TypeVar) else kind
