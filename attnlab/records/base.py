"""What makes a class a record: frozen, keyword-only, and JSON both ways.

`to_json` needs only the standard library, `from_json` validates with msgspec, which is imported
there and not before. NaN and the infinities travel as the strings "NaN", "Infinity" and
"-Infinity".
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, cast, dataclass_transform

if TYPE_CHECKING:
    from msgspec.json import Decoder

R = TypeVar("R")
FORMAT = 1


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def record(cls: type[R]) -> type[R]:
    """A frozen, keyword-only dataclass with slots.

    What dataclasses would write and compile for each class anew is the same function for all:
    that is a third of what importing the records costs.
    """
    cls.__repr__, cls.__eq__, cls.__hash__ = _repr, _eq, _hash  # type: ignore[method-assign]
    return dataclass(frozen=True, kw_only=True, slots=True, repr=False, eq=False)(cls)


def _values(self: Any) -> tuple[Any, ...]:
    return tuple(getattr(self, name) for name in self.__dataclass_fields__)


def _repr(self: Any) -> str:
    pairs = zip(self.__dataclass_fields__, _values(self), strict=True)
    return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in pairs)})"


def _eq(self: Any, other: object) -> bool:
    return type(self) is type(other) and _values(self) == _values(other)


def _hash(self: Any) -> int:
    return hash(_values(self))


def plain(value: Any) -> Any:  # noqa: PLR0911  a return for each kind, the usual ones first
    """A record as dicts, lists, strings and numbers that strict JSON can hold."""
    if isinstance(value, str):
        if value.isascii():
            return value
        # half a surrogate pair is no JSON
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {plain(str(k)): plain(v) for k, v in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if is_dataclass(value):
        return {name: plain(getattr(value, name)) for name in value.__dataclass_fields__}
    return value


def to_json(value: Any) -> str:
    """Strict JSON text of a record (or of a dict or list of records)."""
    return json.dumps(plain(value), allow_nan=False)


def from_json(kind: type[R], text: str | bytes | bytearray) -> R:
    """The record of `kind` in `text`; raises `ValueError` where it does not fit."""
    record: R = _decoder(cast("Any", kind)).decode(text)
    return record


@cache
def _decoder(kind: Any) -> Decoder[Any]:
    from msgspec.json import Decoder

    return Decoder(kind, strict=False)  # strict, it would refuse "NaN" for a float
