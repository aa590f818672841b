"""The tensors inside a value: in its lists, tuples, dicts and dataclasses."""

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import torch
from torch import Tensor, nn

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


def map_tensors(change: Callable[[Tensor], Any], value: Any, rest: Any = None) -> Any:
    """The value with `change(t)` in place of each tensor `t` in lists, tuples and dicts, and with
    `rest(v)`, where that is given, in place of everything else in them."""
    if isinstance(value, Tensor):
        return change(value)
    if type(value) in (list, tuple):
        return type(value)(map_tensors(change, v, rest) for v in value)
    if type(value) is dict:
        return {k: map_tensors(change, v, rest) for k, v in value.items()}
    return rest(value) if rest is not None else value


def copy_arguments(change: Callable[[Tensor], Any], value: Any) -> Any:
    """Arguments for one call: `change(t)` for each tensor, and copies of the objects that the call
    may fill, as it fills a cache. What cannot be copied, a module among them, is shared."""

    def copied(held: Any) -> Any:
        if isinstance(held, nn.Module):
            return held
        with torch._C.DisableTorchFunction():
            memo = {id(t): _own(change(t), t) for t in held_tensors(held, set())}
            try:
                return copy.deepcopy(held, memo)
            except Exception:  # a lock, an open file
                return held

    return map_tensors(change, value, copied)


def _own(new: Any, old: Tensor) -> Any:
    return old.detach().clone() if new is old else new


def held_tensors(value: Any, seen: set[int]) -> Iterator[Tensor]:
    """The tensors that an object, and what it holds, have as attributes or in containers."""
    if isinstance(value, Tensor):
        yield value
    elif id(value) not in seen and not isinstance(value, (type, nn.Module)):
        seen.add(id(value))
        for part in (*_parts(value), *getattr(value, "__dict__", {}).values()):
            yield from held_tensors(part, seen)
