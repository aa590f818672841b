"""attnlab: practise and debug attention and positional-encoding code in PyTorch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attnlab.api import trace, tracing

__version__ = "0.1.0"
__all__ = ["__version__", "trace", "tracing"]


def __getattr__(name: str) -> Any:
    """`trace` and `tracing` load torch when they are first used, and not before."""
    if name in ("trace", "tracing"):
        from attnlab import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
