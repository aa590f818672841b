"""What a module keeps between calls, in the form that its contract declares."""

import inspect
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from attnlab.tracer.nested_tensors import held_tensors

OTHERS = ("_parameters", "_modules")  # of a module: no cache


@dataclass
class KVCache:
    """One cache: empty after `begin`, then filled by each call that takes `arguments`."""

    target: Any
    form: str
    argument: str
    new: str
    reset: str
    reorder: str
    most: str = ""  # limits, which the judge looks at
    in_place: bool = False
    cache: Any = None

    def begin(self, batch: int, length: int) -> None:
        """Forget everything, and make room for `length` positions of `batch` sequences."""
        self.cache = _new_cache(getattr(self.target, self.new), batch, length) if self.new else None
        self.clear()

    def clear(self) -> None:
        if self.reset:
            getattr(self.target, self.reset)()

    def arguments(self) -> dict[str, Any]:
        return {} if self.form == "inner" else {self.argument: self.cache}

    def output(self, out: Any) -> Any:
        """What forward returned, without the cache that comes with it."""
        if self.form != "returned":
            return out
        if not isinstance(out, tuple | list) or len(out) != 2:
            what = f"{len(out)} things" if isinstance(out, tuple | list) else type(out).__name__
            raise TypeError(f"forward returned {what}, not the pair (output, cache)")
        self.cache = out[1]
        return out[0]

    def tensors(self) -> list[Tensor]:
        """What is kept: in the cache, or beside its parameters by a module that has it inside."""
        if self.form != "inner":
            return list(held_tensors(self.cache, set()))
        kept = [
            {name: each for name, each in vars(part).items() if name not in OTHERS}
            for part in self.target.modules()
        ]
        return list(held_tensors(kept, set()))

    def reorder_rows(self, parents: Tensor) -> None:
        """Row b of the cache becomes what row parents[b] was."""
        if not self.reorder:
            self.cache = _select_rows(self.cache, parents)
            return
        own = getattr(self.cache, self.reorder, None)
        if own is not None:
            changed = own(parents)
        elif isinstance(self.cache, list):  # one for each layer
            for cache in self.cache:
                getattr(cache, self.reorder)(parents)
            return
        elif self.form == "inner":
            changed = getattr(self.target, self.reorder)(parents)
        else:
            changed = getattr(self.target, self.reorder)(self.cache, parents)
        self.cache = self.cache if changed is None else changed


def _new_cache(new: Any, batch: int, length: int) -> Any:
    """An empty cache; a module that knows its longest sequence need not be told."""
    try:
        inspect.signature(new).bind(batch, length)
    except TypeError:
        return new(batch)
    return new(batch, length)


def _select_rows(cache: Any, parents: Tensor) -> Any:
    """Other rows of every tensor of a cache, which has the batch first."""
    if isinstance(cache, Tensor):
        return cache.index_select(0, parents) if cache.dim() else cache
    if isinstance(cache, dict):
        return {key: _select_rows(value, parents) for key, value in cache.items()}
    if isinstance(cache, tuple | list):
        rows = [_select_rows(value, parents) for value in cache]
        return type(cache)(*rows) if hasattr(cache, "_fields") else type(cache)(rows)
    return cache
