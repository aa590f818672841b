"""Use optimizers without importing the compiler.

The first step of any torch optimizer imports `torch._dynamo`, to tell a compiler that is not there
where graphs break: three seconds in each process. A stand-in answers those calls; whoever asks it
for anything else gets the real module.
"""

import importlib
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any

import torch

NAME = "torch._dynamo"


class CompilerStandIn(types.ModuleType):
    """What optimizers ask of `torch._dynamo`; the real one is imported for anything else."""

    @staticmethod
    def graph_break(*_: Any, **__: Any) -> None:
        """There is no graph to break."""

    @staticmethod
    def disable(function: Callable[..., Any] | None = None, *_: Any, **__: Any) -> Any:
        """Nothing is compiled: the function as it is, or a decorator that gives it."""
        return function if function is not None else lambda decorated: decorated

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__path__":  # what the import system looks for
            raise AttributeError(name)
        if sys.modules.get(NAME) is self:
            del sys.modules[NAME]
            torch._dynamo = importlib.import_module(NAME)
        return getattr(sys.modules[NAME], name)


def skip_compiler(texts: Iterable[str]) -> None:
    """Put the stand-in, unless the compiler is imported already or a text asks for it."""
    if NAME not in sys.modules and not any("compile" in t or "_dynamo" in t for t in texts):
        sys.modules[NAME] = torch._dynamo = CompilerStandIn(NAME)
