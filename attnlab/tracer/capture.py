"""Record one run of a call, with the views that its options ask for."""

from dataclasses import replace
from importlib import import_module

import torch
from torch import Tensor

from attnlab.tracer.call_setup import TracedCall, run_call, setup_notes
from attnlab.tracer.cast import cast, cast_inputs, fresh
from attnlab.tracer.nan_origin import MeasuringRecorder, first_nan, rows_to_measure
from attnlab.tracer.nested_tensors import tensors_in
from attnlab.tracer.raw_trace import KnownAxes, RawCrash, RawTrace, build_raw_trace, crash_of
from attnlab.tracer.recorder import Recorder

# The view of each option that shows more than rows: its file in `views`, imported when it is
# wanted, and the function that adds it to a raw trace.
VIEWS = {
    "cost": ("costs", "add_cost"),  # first: it may record the run anew
    "backward": ("backward", "add_gradients"),
    "symbolic": ("symbolic", "add_guards"),
    "compile": ("compilation", "add_compilation"),
    "aten": ("kernels", "add_kernels"),
    "time": ("costs", "add_times"),
    "memory": ("costs", "add_bytes"),
    "attention": ("attention", "add_attention"),
    "values": ("values", "add_values"),
}


def capture(traced: TracedCall) -> RawTrace:
    """The raw trace of one run, with the views that `traced.options` asks for."""
    with cast(traced.root, traced.options):
        traced = replace(traced, given=cast_inputs(traced.given, traced.options))
        raw = record_run(traced)
        rows = rows_to_measure(raw)
        raw = measure_rows(traced, raw, rows) if rows else raw
        for option, (file, add) in VIEWS.items():
            if getattr(traced.options, option):
                raw = getattr(import_module(f"attnlab.tracer.views.{file}"), add)(traced, raw)
    return raw


def measure_rows(traced: TracedCall, raw: RawTrace, rows: tuple[int, ...]) -> RawTrace:
    """Repeat the run and measure `rows`; unchanged if the module behaves differently."""
    watcher = MeasuringRecorder(traced.root, rows)
    again = record_run(traced, watcher)
    same = len(again.ops) == len(raw.ops) and first_nan(again) == first_nan(raw)
    measured = tuple(watcher.measured[row] for row in sorted(watcher.measured))
    return replace(again, measured=measured) if same else raw


def record_run(traced: TracedCall, recorder: Recorder | None = None) -> RawTrace:
    """The raw trace of one run without gradients."""
    given = fresh(traced.given)
    tensors = [(n, t) for n, t in given if t is not None]
    recorder = recorder or Recorder(traced.root)
    recorder.name_inputs([t for _, t in tensors])
    if isinstance(recorder, MeasuringRecorder):
        recorder.names |= {id(t): n for n, t in tensors}
    crash = None
    try:
        out = run_call(traced, recorder, given)
        recorder.name_outputs(tensors_in(out))
    except Exception as error:
        crash = crash_of(recorder, error, traced.file, traced.entry)
    known = KnownAxes([traced.axes.get(n) for n, _ in tensors], traced.sizes)
    raw = raw_trace_of(recorder, tensors, crash, known)
    return replace(raw, notes=(*raw.notes, *setup_notes(traced.root, raw.ops)))


def raw_trace_of(
    recorder: Recorder,
    given: list[tuple[str, Tensor]],
    crash: RawCrash | None,
    known: KnownAxes | None = None,
) -> RawTrace:
    """The raw trace of a recorder that has stopped."""
    return build_raw_trace(
        recorder,
        inputs=tuple(tuple(t.shape) for _, t in given),
        input_names=tuple(n for n, _ in given),
        input_kinds=tuple(_kind(t) for _, t in given),
        crash=crash,
        known=known,
    )


def _kind(t: Tensor) -> str:
    return "bool" if t.dtype is torch.bool else "float" if t.is_floating_point() else "int"
