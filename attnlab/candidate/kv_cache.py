"""What a module keeps between calls, in the form that its contract declares."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attnlab.candidate.attention_internals import watched
from attnlab.tracer.capture import Given, fresh


@dataclass
class Kept:
    """One cache: empty at `begin`, then filled by each call that takes `arguments`."""

    built: Any
    form: str
    argument: str
    new: str
    reset: str
    reorder: str
    cache: Any = None

    def begin(self, batch: int, length: int) -> None:
        """Forget everything, and make room for `length` positions of `batch` sequences."""
        self.cache = _made(getattr(self.built, self.new), batch, length) if self.new else None
        self.clear()

    def clear(self) -> None:
        if self.reset:
            getattr(self.built, self.reset)()

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

    def follow(self, parents: Tensor) -> None:
        """Row b of the cache becomes what row parents[b] was."""
        if not self.reorder:
            self.cache = _rows(self.cache, parents)
            return
        own = getattr(self.cache, self.reorder, None)
        if own is not None:
            changed = own(parents)
        elif isinstance(self.cache, list):  # one for each layer
            for cache in self.cache:
                getattr(cache, self.reorder)(parents)
            return
        elif self.form == "inner":
            changed = getattr(self.built, self.reorder)(parents)
        else:
            changed = getattr(self.built, self.reorder)(self.cache, parents)
        self.cache = self.cache if changed is None else changed


def _made(new: Any, batch: int, length: int) -> Any:
    """An empty cache; a module that knows its longest sequence need not be told."""
    try:
        inspect.signature(new).bind(batch, length)
    except TypeError:
        return new(batch)
    return new(batch, length)


def _rows(cache: Any, parents: Tensor) -> Any:
    """Other rows of every tensor of a cache, which has the batch first."""
    if isinstance(cache, Tensor):
        return cache.index_select(0, parents) if cache.dim() else cache
    if isinstance(cache, dict):
        return {key: _rows(value, parents) for key, value in cache.items()}
    if isinstance(cache, tuple | list):
        rows = [_rows(value, parents) for value in cache]
        return type(cache)(*rows) if hasattr(cache, "_fields") else type(cache)(rows)
    return cache


class Keeping:
    """Mixed into `Session`: calls that share a cache, and a look at the insides of one."""

    built: Any
    cache: dict[str, str] = {}  # noqa: RUF012  never written to: how modules keep keys and values
    kept: Kept | None = None

    def _mode(self, train: bool) -> None:
        raise NotImplementedError

    def do_build(self, name: str | None, init: dict[str, Any] | list[Any], seed: int) -> Any:
        raise NotImplementedError

    def _invoke(self, given: Given, goes_on: bool = False) -> Any:
        raise NotImplementedError

    def do_declare_cache(self, **cache: str) -> Any:
        """How the modules to be built keep keys and values between calls."""
        self.cache = cache
        return {}

    def do_cached_steps(
        self,
        calls: list[Given],
        batch: int,
        length: int,
        parents: Tensor | None = None,
        train: bool = False,
        beside: dict[str, Any] | None = None,
    ) -> Any:
        """The outputs of calls that share a cache. After the first of them it is reordered, or an
        instance `beside` this one is built and called."""
        if self.kept is None:
            raise TypeError("no cache was declared")
        self._mode(train)
        found: dict[str, Any] = {}
        with torch.no_grad():
            self.kept.built = self.built
            self.kept.begin(batch, length)
            for i, inputs in enumerate(calls):
                if beside is not None and i == 1:
                    self._aside(**beside)
                if parents is not None and i == 1:
                    self.kept.follow(parents)
                out = self._invoke(fresh(inputs), goes_on=True)
                found[str(i)] = out.detach().clone() if isinstance(out, Tensor) else None
        return {"outputs": found}

    def _aside(self, other: Given, **recipe: Any) -> None:
        """Another instance reads a sequence of its own."""
        built, kept = self.built, self.kept
        try:
            self.do_build(**recipe)
            self._mode(train=False)
            self._invoke(fresh(other))
        finally:
            self.built, self.kept = built, kept

    def do_attention_internals(self, inputs: Given) -> Any:
        """What softmax was given and what the values were mixed by."""
        self._mode(train=False)
        return watched(lambda: self._invoke(fresh(inputs)))
