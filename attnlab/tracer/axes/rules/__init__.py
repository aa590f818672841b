"""What each operation does to axes: one file for each kind of operation.

A rule is a function of the flow and the call. It answers the axes of the output, or an `Arr` where
more is known of it, or a list of these where there are several outputs; None where it cannot tell.
"""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from attnlab.tracer.axes.op_call import Rule


@cache
def load() -> dict[str, Rule]:
    """The rule of every operation, by the operation's name without underscores."""
    found: dict[str, Rule] = {}
    for module in iter_modules(__path__):
        found |= import_module(f"{__name__}.{module.name}").RULES
    return found
