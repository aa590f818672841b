"""attnlab: practise and debug attention and positional-encoding code in PyTorch."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attnlab.api import diff, trace, tracing, triage, verify, watch_training

__version__ = "0.1.0"
__all__ = ["__version__", "diff", "trace", "tracing", "triage", "verify", "watch_training"]


def __getattr__(name: str) -> Any:
    """What is asked of a module loads torch when it is first used, and not before."""
    if name in __all__:
        from attnlab import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
