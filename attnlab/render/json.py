"""Documents: what `--json` prints. The keys are a contract; scripts rely on them.

`document()` of every page builds one of these from plain records; nothing is computed here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

from attnlab.errors import AttnlabError
from attnlab.records import FORMAT, Trace, plain, to_json
from attnlab.render.streams import discard_output

if TYPE_CHECKING:
    from attnlab.render.screen import Screen

Document = dict[str, Any]


class Page(Protocol):
    """What one command shows: the same record as a screen and as a document."""

    def show(self, screen: Screen) -> None: ...

    def document(self) -> Document: ...


# Told which page a command shows, where another command runs it.
on_page: ContextVar[Callable[[Page], object]] = ContextVar("on_page", default=lambda _: None)


def write_document(document: Document) -> None:
    """One document, one line, on stdout."""
    write_text(to_json({"format": FORMAT, **document}) + "\n")


def write_text(text: str) -> None:
    """What another program reads, on stdout."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        discard_output(sys.stdout)


def pick(record: object, *names: str) -> Document:
    """Some fields of a record, under their own names."""
    return {name: plain(getattr(record, name)) for name in names}


def error_document(error: AttnlabError) -> Document:
    return {"outcome": error.outcome, "error": pick(error, "message", "hint", "where")}


def trace_rows(trace: Trace | None) -> Document:
    """The keys `ops`, `findings`, `crash` and `notes`, also when there was nothing to trace."""
    trace = trace or Trace()
    return {
        "ops": plain((*trace.ops, *(op for call in trace.calls for op in call.trace.ops))),
        **pick(trace, "findings", "crash", "notes"),
    }
