"""One recorded run of whatever is called, and everything else that was asked about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.records.trace import TraceOptions
from attnlab.tracer.call_setup import made, notes
from attnlab.tracer.cast import Given as Given  # noqa: PLC0414 - read from here by many
from attnlab.tracer.cast import cast, cast_inputs
from attnlab.tracer.cast import fresh as fresh  # noqa: PLC0414
from attnlab.tracer.nan_origin import Watcher, first_nan, suspects, told
from attnlab.tracer.raw_trace import Known, RawFall, RawTrace, collect, fall_of
from attnlab.tracer.recorder import Recorder

# What `TraceOptions` ask for beyond the rows: the file that tells it, imported when it is wanted.
STAGES = {
    "backward": "backward",
    "symbolic": "symbolic",
    "aten": "kernels",
    "time": "costs",
    "memory": "costs",
    "attention": "attention",
    "values": "values",
}


@dataclass(frozen=True)
class Shot:
    """What is to be recorded: a call that can be made again, and what is known about it."""

    call: Callable[[Given], Any]
    given: Given  # names and values of the inputs; None for one that is left out
    root: nn.Module | None = None  # gives submodules, weights and buffers their names
    axes: dict[str, tuple[str, ...]] = field(default_factory=dict)  # of the inputs, by their names
    sizes: dict[str, int] = field(default_factory=dict)  # what the names of axes stand for
    file: str = ""  # the candidate's, where an exception is placed
    entry: object = None  # the function that is called, for calls that do not fit
    seed: int = 0
    options: TraceOptions = field(default_factory=TraceOptions)


def capture(shot: Shot) -> RawTrace:
    """The rows of one run, and what else `shot.options` asks for."""
    with cast(shot.root, shot.options):
        shot = replace(shot, given=cast_inputs(shot.given, shot.options))
        raw = recorded(shot)
        rows = suspects(raw)
        raw = closer(shot, raw, rows) if rows else raw
        for stage in dict.fromkeys(s for ask, s in STAGES.items() if getattr(shot.options, ask)):
            raw = import_module(f"attnlab.tracer.views.{stage}").told(shot, raw)
    return raw


def closer(shot: Shot, raw: RawTrace, rows: tuple[int, ...]) -> RawTrace:
    """The same run again with a closer look at some rows; a module may have a memory."""
    watcher = Watcher(shot.root, rows)
    again = recorded(shot, watcher)
    same = len(again.ops) == len(raw.ops) and first_nan(again) == first_nan(raw)
    return replace(again, **told(watcher, first_nan(again))) if same else raw


def recorded(shot: Shot, recorder: Recorder | None = None) -> RawTrace:
    """One run, without gradients."""
    given = fresh(shot.given)
    recorder = recorder or Recorder(shot.root)
    recorder.name_inputs([t for _, t in given if t is not None])
    if isinstance(recorder, Watcher):
        recorder.given = {id(t): n for n, t in given if t is not None}
    fall = None
    try:
        made(shot, recorder, given)
    except Exception as error:
        fall = fall_of(recorder, error, shot.file, shot.entry)
    kept = [(n, t) for n, t in given if t is not None]
    raw = finish(recorder, kept, fall, Known([shot.axes.get(n) for n, _ in kept], shot.sizes))
    return replace(raw, notes=(*raw.notes, *notes(shot.root, raw.ops)))


def finish(
    recorder: Recorder,
    given: list[tuple[str, Tensor]],
    fall: RawFall | None,
    known: Known | None = None,
) -> RawTrace:
    """The raw trace of a recorder that has stopped."""
    return collect(
        recorder,
        inputs=tuple(tuple(t.shape) for _, t in given),
        input_names=tuple(n for n, _ in given),
        input_kinds=tuple(_kind(t) for _, t in given),
        fall=fall,
        known=known,
    )


def _kind(t: Tensor) -> str:
    return "bool" if t.dtype is torch.bool else "float" if t.is_floating_point() else "int"
