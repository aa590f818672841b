"""Verbs that record operations."""

import contextlib
import copy
import sys
import types
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.optim.optimizer import (
    Optimizer,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from attnlab.candidate.cache_feed import CacheFeed
from attnlab.candidate.load import move_in, remember
from attnlab.candidate.program import StepRecorder
from attnlab.candidate.quick_optimizers import skip_compiler
from attnlab.candidate.registry import verb
from attnlab.candidate.session import OtherTarget, Session
from attnlab.candidate.stand_ins import offer_stand_ins
from attnlab.records import TraceOptions, to_json
from attnlab.tracer.axes.module_sizes import module_sizes
from attnlab.tracer.bind_arguments import guess_known_axes, repeatable_call
from attnlab.tracer.call_setup import TracedCall
from attnlab.tracer.capture import capture, raw_trace_of, record_run
from attnlab.tracer.cast import Given
from attnlab.tracer.decoding import (
    ValuesByLine,
    cache_in,
    cache_length,
    cut_inputs,
    first_difference,
    largest_gap,
    output_of,
)
from attnlab.tracer.demo_recorder import FirstCallRecorder, StopDemo
from attnlab.tracer.findings.base import SCORES
from attnlab.tracer.in_process import BlockRecorder
from attnlab.tracer.raw_trace import RawTrace, crash_of
from attnlab.tracer.time_first import read_inputs


@verb
def trace(
    session: Session,
    inputs: Given,
    seed: int,
    axes: dict[str, list[str]] | None = None,
    sizes: dict[str, int] | None = None,
    options: dict[str, Any] | None = None,
    shapes: dict[str, list[int]] | None = None,
) -> Any:
    """Every operation of one forward pass, as the JSON text of a `RawTrace`.

    `axes` are what the user calls the axes of the inputs, `sizes` what the names stand for. With
    `shapes` of the inputs, or where the module has no data either, no tensor has any."""
    session.set_mode(train=False)
    without = shapes is not None or any(p.is_meta for _, p in session.named_tensors("parameters"))
    if without:
        inputs = _without_data(session, inputs, shapes or {})
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
    # of `arange(S)` without `device=`, too: the course is the question, not the module's devices
    with torch.device("meta") if without else contextlib.nullcontext():
        return {"trace": to_json(capture(shot))}


def _without_data(session: Session, inputs: Given, shapes: dict[str, list[int]]) -> Given:
    """The inputs in these shapes on the meta device, where the module goes as well."""
    if isinstance(session.target, nn.Module):
        session.target.to("meta")
    return [
        (n, t if t is None else torch.empty(shapes.get(n, t.shape), dtype=t.dtype, device="meta"))
        for n, t in inputs
    ]


@verb
def trace_calls(
    session: Session,
    inputs: Given,
    seed: int,
    axes: dict[str, list[str]],
    sizes: dict[str, int],
    calls: int,
    symbol: str = "",
    feed: str = "",
    past: str = "",
) -> Any:
    """Several calls, each fed with the cache that the one before returned, up to one that raises.

    With `symbol`, the axis of positions, the first call has all but `calls - 1` of the inputs'
    positions and each later one the next of them; `differs` is the first row that a step does not
    share with a pass over all positions, `gap` how far their outputs are apart. `feed` names the
    argument that takes the cache, `past` the axis of its positions where it is an input;
    `lengths` are those positions before and after each call, `unfed` the argument that the first
    call returned nothing for, or "" where it returned what no argument takes."""
    session.set_mode(train=False)
    twins = [copy.deepcopy(session.target) for _ in range(2)] if symbol else []
    chain = CacheFeed(session, feed, axes, past)
    steps = _steps(inputs, axes, symbol, calls)
    traces, lengths, unfed, crashed = [], [], None, False
    for step in steps:
        given = chain.next_inputs(step.given)
        before = chain.shapes()
        own = {**sizes, **chain.past_size(given), **({symbol: step.length} if symbol else {})}
        raw = record_run(_traced_call(session, chain, given, axes, own, seed))
        traces.append(to_json(raw))
        lengths.append(cache_length(before, chain.shapes(), chain.past_place(inputs)))
        if crashed := raw.crash is not None:
            break
        if len(traces) == 1 and bool(chain.name) is (cache_in(chain.returned, chain.name) is None):
            unfed = chain.name
    answer: dict[str, Any] = {"traces": traces, "lengths": lengths, "unfed": unfed}
    if not symbol or crashed:
        return answer
    return answer | _compare_steps(session, chain, twins, inputs, steps)


class _Step(NamedTuple):
    given: Given
    start: int
    end: int

    @property
    def length(self) -> int:
        return self.end - self.start


def _steps(inputs: Given, axes: dict[str, list[str]], symbol: str, calls: int) -> list[_Step]:
    if not symbol:
        return [_Step(inputs, 0, 0)] * calls
    name = next(n for n, a in axes.items() if symbol in a)
    whole = next(t for n, t in inputs if n == name and t is not None)
    first = whole.shape[axes[name].index(symbol)] - (calls - 1)
    cuts = [(0, first), *((first + k, first + k + 1) for k in range(calls - 1))]
    return [_Step(cut_inputs(inputs, axes, symbol, a, b), a, b) for a, b in cuts]


def _traced_call(
    session: Session,
    chain: CacheFeed,
    given: Given,
    axes: dict[str, list[str]],
    sizes: dict[str, int],
    seed: int,
) -> TracedCall:
    """One of several calls, with its own sizes."""
    root = session.target if isinstance(session.target, nn.Module) else None
    return TracedCall(
        call=chain.invoke,
        given=given,
        root=root,
        axes={n: tuple(a) for n, a in axes.items()},
        sizes={**module_sizes(root), **sizes},
        file=session.file,
        entry=session.entry,
        seed=seed,
    )


def _compare_steps(
    session: Session, chain: CacheFeed, twins: list[Any], inputs: Given, steps: list[_Step]
) -> dict[str, Any]:
    """The steps again, with the values of every line, beside one pass over all positions."""
    with torch.no_grad(), OtherTarget(session):
        chain.start(twins[0])
        given = chain.next_inputs(inputs)
        with ValuesByLine(session.file) as full:
            whole = output_of(chain.invoke(given))
        chain.start(twins[1])
        gap = 0.0
        for step in steps:
            given = chain.next_inputs(step.given)
            with ValuesByLine(session.file) as mine:
                out = output_of(chain.invoke(given))
            differs = first_difference(full.values, mine.values, step.start, step.end)
            if differs:
                return {"differs": to_json(differs)}
            if out is not None and whole is not None and out.dim() == whole.dim() > 1:
                wanted = whole.narrow(1, step.start, step.length)
                gap = max(gap, largest_gap(out, wanted))
    return {"gap": gap}


@verb
def demo(
    session: Session,
    file: str,
    text: str,
    path: str,
    own: dict[str, Any],
    options: dict[str, Any] | None = None,
) -> Any:
    """Run a file as `python file.py` would, and record the first module that it calls; or, with a
    step among the options, what leads to this step of its optimizer."""
    run = main_of(session, file, text, path, own)
    asked = TraceOptions(**(options or {}))
    if asked.step:
        skip_compiler([text])
        return {"trace": to_json(_training_step(file, run, asked.step))}
    recorder = FirstCallRecorder()
    crash = None
    try:
        with recorder:
            run()
    except StopDemo:
        pass
    except Exception as error:
        crash = crash_of(recorder, error, session.file)
    if not recorder.began and crash is None:
        return _without_module(file, run)

    def read(time_first: bool) -> RawTrace:
        known = guess_known_axes(recorder.given, recorder.root, time_first)
        return raw_trace_of(recorder, recorder.given, crash, known)

    raw = read_inputs(read)
    if asked.extras and recorder.call is not None:
        raw = _repeated(recorder.call, raw, session.file, asked)
    note = (
        "the first call of a module that the file makes when it runs; what comes after was not run"
    )
    return {"trace": to_json(replace(raw, notes=(*raw.notes, note)))}


def _without_module(file: str, run: Callable[[], None]) -> dict[str, str]:
    """What a file of functions does when it runs."""
    block = BlockRecorder({}, None)
    with block:
        run()
    raw = block.raw_trace(None)
    if not any(op.op in SCORES for op in raw.ops):
        raise LookupError(f"{file} ran to its end without calling a module")
    note = "the file calls no module: all that it does when it runs was looked at"
    return {"trace": to_json(replace(raw, notes=(*raw.notes, note)))}


def _repeated(
    made: tuple[nn.Module, tuple[Any, ...], dict[str, Any]],
    raw: RawTrace,
    file: str,
    options: TraceOptions,
) -> RawTrace:
    """The call of a demo once more, with the views that the options ask for."""
    module, args, kwargs = made
    tensors, call = repeatable_call(module, args, kwargs)
    axes = dict(zip(raw.input_names, raw.input_axes, strict=True))
    return capture(
        TracedCall(
            call=call,
            given=list(tensors.items()),
            root=module,
            axes=axes,
            sizes=raw.sizes,
            file=file,
            entry=module.forward,
            options=options,
        )
    )


def main_of(
    session: Session, file: str, text: str, path: str, own: dict[str, Any]
) -> Callable[[], None]:
    """What runs a file as `python file.py` does, in the user's surroundings."""
    session.file = file
    move_in(own)
    sys.argv = [path or file, *own["arguments"]]
    main = types.ModuleType("__main__")
    main.__file__ = path or file
    main.__package__ = (own["module"] or "").rpartition(".")[0] or None
    sys.modules["__main__"] = main
    remember(file, text)
    offer_stand_ins(text, main.__dict__)
    code = compile(text, file, "exec", dont_inherit=True)
    return lambda: exec(code, main.__dict__)


def _training_step(file: str, run: Callable[[], Any], step: int) -> RawTrace:
    """What a script runs between two steps of its optimizer, up to what it raised.

    Raises `LookupError` where it ends before that step."""
    training = StepRecorder(register_optimizer_step_post_hook, step)
    quiet = register_optimizer_step_pre_hook(training.leave_out_optimizer)
    make = Optimizer.__init__

    def begin(optimizer: Optimizer, *args: Any, **kwargs: Any) -> None:
        make(optimizer, *args, **kwargs)
        training.recorder.active = True

    training.recorder.active = False  # before the first step, the making of model and data
    Optimizer.__init__ = begin  # type: ignore[method-assign,assignment]
    try:
        error = training.record(run)
    finally:
        Optimizer.__init__ = make  # type: ignore[method-assign]
        quiet.remove()
    if training.done < step and not isinstance(error, Exception):
        steps = "step" if training.done == 1 else "steps"
        raise LookupError(f"{file} took only {training.done} optimizer {steps}")
    raw = training.recorder.raw_trace(error)
    note = f"optimizer step {step}; what comes after it was not run"
    return replace(raw, notes=raw.notes if error else (*raw.notes, note))
