"""Where a callable takes which input, and what it takes and was given where the two do not fit."""

import inspect
from typing import Any

from attnlab.tracer.recorder import OURS


class ParameterPositions:
    """Reads a function once: its signature costs as much as a small forward pass."""

    def __init__(self) -> None:
        self.function: object = None  # the one that was asked about last
        self.places: dict[str, int] = {}

    def of(self, target: Any) -> dict[str, int]:
        """Where each parameter stands that may be given by name; -1 where it must be."""
        function = getattr(target, "__func__", target)
        if self.function is not function:
            self.function, self.places = function, _places(target)
        return self.places


def _places(target: Any) -> dict[str, int]:
    try:
        parameters = inspect.signature(target).parameters.values()
    except (TypeError, ValueError):
        return {}
    return {
        p.name: -1 if p.kind is p.KEYWORD_ONLY else i
        for i, p in enumerate(parameters)
        if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    }


class ArgumentMismatch:
    """Says what a callable takes and was given, where the two do not fit.

    Not a generator: contextlib's frames would be taken for the candidate's."""

    def __init__(self, called: Any, names: list[str]) -> None:
        self.called, self.names = called, names

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, TypeError) or not _misfit(error):
            return
        try:
            takes = ", ".join(inspect.signature(self.called).parameters)
        except (TypeError, ValueError):
            return
        given = ", ".join(self.names) or "nothing"
        raise TypeError(f"{error}; it takes ({takes}) and is given ({given})") from None


def _misfit(error: TypeError) -> bool:
    """Raised by the call itself, before a line of what was called could run."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    file = trace.tb_frame.f_code.co_filename if trace is not None else ""
    ours = file.startswith(OURS) or file.endswith("torch/nn/modules/module.py")
    return ours and "argument" in str(error)
