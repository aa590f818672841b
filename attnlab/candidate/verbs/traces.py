"""Verbs that record operations."""

from __future__ import annotations

import sys
import types
from dataclasses import replace
from typing import Any

from torch import nn

from attnlab.candidate.load import move_in, remember
from attnlab.candidate.registry import verb
from attnlab.candidate.session import Session
from attnlab.records import TraceOptions, to_json
from attnlab.tracer.axes.module_sizes import module_sizes
from attnlab.tracer.bind_arguments import guess_known_axes
from attnlab.tracer.call_setup import TracedCall
from attnlab.tracer.capture import capture, raw_trace_of
from attnlab.tracer.cast import Given
from attnlab.tracer.demo_recorder import FirstCallRecorder, StopDemo
from attnlab.tracer.raw_trace import crash_of


@verb
def trace(
    session: Session,
    inputs: Given,
    seed: int,
    axes: dict[str, list[str]] | None = None,
    sizes: dict[str, int] | None = None,
    options: dict[str, Any] | None = None,
) -> Any:
    """Every operation of one forward pass, as the JSON text of a `RawTrace`.

    `axes` are what the user calls the axes of the inputs, `sizes` what the names stand for.
    """
    session.set_mode(train=False)
    root = session.target if isinstance(session.target, nn.Module) else None
    shot = TracedCall(
        call=session.invoke,
        given=inputs,
        root=root,
        axes={n: tuple(a) for n, a in (axes or {}).items()},
        sizes={**module_sizes(root), **(sizes or {})},
        file=session.file,
        entry=session.entry,
        seed=seed,
        options=TraceOptions(**(options or {})),
    )
    return {"trace": to_json(capture(shot))}


@verb
def demo(session: Session, file: str, text: str, path: str, own: dict[str, Any]) -> Any:
    """Run a file as `python file.py` would, and record the first module that it calls."""
    session.file = file
    move_in(own)
    sys.argv = [path or file]
    main = types.ModuleType("__main__")
    main.__file__ = path or file
    main.__package__ = (own["module"] or "").rpartition(".")[0] or None
    sys.modules["__main__"] = main
    remember(file, text)
    recorder = FirstCallRecorder()
    crash = None
    try:
        with recorder:
            exec(compile(text, file, "exec", dont_inherit=True), main.__dict__)
    except StopDemo:
        pass
    except Exception as error:
        crash = crash_of(recorder, error, session.file)
    if not recorder.began and crash is None:
        raise LookupError(f"{file} ran to its end without calling a module")
    raw = raw_trace_of(
        recorder, recorder.given, crash, guess_known_axes(recorder.given, recorder.root)
    )
    note = "the first call of a module in the demo; what comes after it was not run"
    return {"trace": to_json(replace(raw, notes=(*raw.notes, note)))}
