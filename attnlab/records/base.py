"""What makes a class a record: frozen, keyword-only, and JSON both ways.

NaN and the infinities travel as the strings "NaN", "Infinity" and "-Infinity"; `reading.py` reads
what is written here.
"""

from __future__ import annotations

import json
import math
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, is_dataclass
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

if TYPE_CHECKING:
    from collections.abc import Callable

R = TypeVar("R")
FORMAT = 1


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def record(cls: type[R]) -> type[R]:
    """A frozen, keyword-only dataclass with slots.

    What dataclasses would write and compile for each class anew is the same function for all:
    that is most of what importing the records would cost.
    """
    for name, function in _SHARED.items():
        setattr(cls, name, function)
    return dataclass(kw_only=True, slots=True, init=False, repr=False, eq=False)(cls)


def _init(self: Any, **values: Any) -> None:
    fields = self.__dataclass_fields__
    if values.keys() != fields.keys():
        if unknown := ", ".join(name for name in values if name not in fields):
            raise TypeError(f"{type(self).__name__} has no field {unknown}")
        values |= {name: default(self, fields[name]) for name in fields.keys() - values.keys()}
    for name, value in values.items():
        object.__setattr__(self, name, value)


def default(self: Any, of: Field[Any]) -> Any:
    if of.default_factory is not MISSING:
        return of.default_factory()
    if of.default is MISSING:
        raise TypeError(f"{type(self).__name__} needs {of.name}")
    return of.default


def _refuse_change(self: Any, name: str, value: object = None) -> None:  # noqa: ARG001
    raise FrozenInstanceError(f"cannot change {name} of {type(self).__name__}")


def _get_state(self: Any) -> dict[str, Any]:
    return {name: getattr(self, name) for name in self.__dataclass_fields__}


def _set_state(self: Any, state: dict[str, Any]) -> None:
    for name, value in state.items():
        object.__setattr__(self, name, value)


def _values(self: Any) -> tuple[Any, ...]:
    return tuple(getattr(self, name) for name in self.__dataclass_fields__)


def _repr(self: Any) -> str:
    pairs = zip(self.__dataclass_fields__, _values(self), strict=True)
    return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in pairs)})"


def _eq(self: Any, other: object) -> bool:
    return type(self) is type(other) and _values(self) == _values(other)


def _hash(self: Any) -> int:
    return hash(_values(self))


_SHARED: dict[str, Callable[..., Any]] = {
    "__init__": _init,
    "__setattr__": _refuse_change,
    "__delattr__": _refuse_change,
    "__getstate__": _get_state,
    "__setstate__": _set_state,
    "__repr__": _repr,
    "__eq__": _eq,
    "__hash__": _hash,
}


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
