"""One recorded run of whatever is called, and everything else that was asked about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.lab.raw import Masked, RawFall, RawTrace, collect, fall_of
from attnlab.lab.recorder import Recorder
from attnlab.records import Look

Given = list[tuple[str, Tensor | None]]


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
    look: Look = field(default_factory=Look)


def capture(shot: Shot) -> RawTrace:
    """The rows of one run, and what else `shot.look` asks for."""
    raw = recorded(shot)
    origin = first_nan(raw)
    if origin is not None:
        again = recorded(shot, watch=origin)
        raw = again if first_nan(again) == origin else raw  # a module may have a memory
    return raw


def recorded(shot: Shot, watch: int = -1) -> RawTrace:
    """One run, without gradients. `watch` is a row whose operands are looked at more closely."""
    given = fresh(shot.given)
    recorder = Recorder(shot.root, watch)
    recorder.name_inputs([t for _, t in given if t is not None])
    torch.manual_seed(shot.seed)
    fall = None
    with torch.no_grad():
        try:
            with recorder:
                shot.call(given)
        except Exception as error:
            fall = fall_of(recorder, error, shot.file, shot.entry)
    return finish(recorder, [(n, t) for n, t in given if t is not None], fall)


def finish(recorder: Recorder, given: list[tuple[str, Tensor]], fall: RawFall | None) -> RawTrace:
    """The raw trace of a recorder that has stopped."""
    masked, watched = None, recorder.watched
    if watched is not None and watched.empty:
        masked = Masked(row=recorder.watch, count=watched.empty, first=watched.first)
    return collect(
        recorder,
        inputs=tuple(tuple(t.shape) for _, t in given),
        input_names=tuple(n for n, _ in given),
        input_kinds=tuple(_kind(t) for _, t in given),
        fall=fall,
        masked=masked,
        tainted=watched.tainted if watched is not None else None,
    )


def fresh(given: Given) -> Given:
    """Copies: what the candidate does to its inputs must not reach the caller's."""
    return [(n, t.clone() if t is not None else None) for n, t in given]


def first_nan(raw: RawTrace) -> int | None:
    return next((op.index for op in raw.ops if op.nan), None)


def _kind(t: Tensor) -> str:
    return "bool" if t.dtype is torch.bool else "float" if t.is_floating_point() else "int"
