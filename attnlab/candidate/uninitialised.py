"""Poison uninitialised memory with NaN."""

import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

FILLING: Any = torch.utils.deterministic  # whose flag is no attribute to a type checker


@contextmanager
def new_memory_is_nan() -> Iterator[None]:
    """Fill the memory that `torch.empty` and its like return with NaN, the largest integer or True,
    in place of what happens to lie there."""
    mode, fill = torch.get_deterministic_debug_mode(), FILLING.fill_uninitialized_memory
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of operations that have no such mode
        torch.set_deterministic_debug_mode("warn")
        FILLING.fill_uninitialized_memory = True
        try:
            yield
        finally:
            torch.set_deterministic_debug_mode(mode)
            FILLING.fill_uninitialized_memory = fill


class NewBooleansAreFalse(TorchFunctionMode):
    """Fill new memory of booleans with False, where it holds True otherwise."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        made = func(*args, **(kwargs or {}))
        if "empty" in getattr(func, "__name__", "") and getattr(made, "dtype", None) is torch.bool:
            made.fill_(False)
        return made


def allocates(words: Collection[str] | None) -> bool:
    """Whether a text with these names (None: any names) can allocate booleans without a value."""
    return words is None or any("empty" in w or "resize" in w for w in words)
