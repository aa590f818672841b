"""The tensors inside a value: in its lists, tuples, dicts and dataclasses."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from torch import Tensor

DEEPEST = 4  # levels of containers in which tensors are looked for


def tensors_in(value: Any, deep: int = 0) -> Iterator[Tensor]:
    """The tensors of a value, in the order in which they stand there."""
    if isinstance(value, Tensor):
        yield value
    elif deep < DEEPEST:
        for part in _parts(value):
            yield from tensors_in(part, deep + 1)


def _parts(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    if isinstance(value, (tuple, list)):
        return list(value)
    if is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, f.name) for f in fields(value)]
    return []


def map_tensors(change: Callable[[Tensor], Any], value: Any) -> Any:
    """The value with `change(t)` in place of each tensor `t` in lists, tuples and dicts."""
    if isinstance(value, Tensor):
        return change(value)
    if type(value) in (list, tuple):
        return type(value)(map_tensors(change, v) for v in value)
    if type(value) is dict:
        return {k: map_tensors(change, v) for k, v in value.items()}
    return value
