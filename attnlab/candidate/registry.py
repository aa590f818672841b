"""The verbs that a session answers, each a function registered once under its own name."""

import pkgutil
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

Verb = Callable[..., dict[str, Any]]
V = TypeVar("V", bound=Verb)
VERBS: dict[str, Verb] = {}


def verb(function: V) -> V:
    """Register a function of a session and what is asked; its name is the verb."""
    assert function.__name__ not in VERBS, f"two verbs are called {function.__name__}"
    VERBS[function.__name__] = function
    return function


@cache
def load_verbs() -> dict[str, Verb]:
    """Every verb of the files in `verbs/`."""
    package = import_module("attnlab.candidate.verbs")
    for module in pkgutil.iter_modules(package.__path__):
        import_module(f"{package.__name__}.{module.name}")
    return VERBS
