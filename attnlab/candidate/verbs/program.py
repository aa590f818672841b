"""Verbs that load a program of several files, train it, and tell what its training half does."""

import operator
import time
import warnings
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor

from attnlab.candidate.evidence import train_and_measure
from attnlab.candidate.process_state import set_seed
from attnlab.candidate.program import (
    CandidateProgram,
    ExactNumbers,
    MissingName,
    SourceModules,
    StepRecorder,
    TrainingWatch,
    as_floats,
    named_weights,
)
from attnlab.candidate.quick_optimizers import skip_compiler
from attnlab.candidate.registry import verb
from attnlab.candidate.session import Session
from attnlab.candidate.stage import STAGE_SETUP, STAGE_VALUE, ComputeMeter, fill_new, plain_value
from attnlab.candidate.uninitialised import new_memory_is_nan
from attnlab.records import to_json
from attnlab.records.program import FORWARD
from attnlab.tracer.raw_trace import describe_error

UNWRITTEN = ("empty", "resize", "Tensor(")  # of what returns memory that nobody wrote


@verb
def load_program(
    session: Session,
    files: dict[str, str],
    label: str,
    entries: dict[str, str],
    constants: list[str],
    exact: bool = False,
) -> Any:
    """Import the files as modules; `exact` in float64. The values of the constants, as text."""
    skip_compiler(files.values())
    warnings.filterwarnings("ignore", module=r"attnlab\.")  # of lines that only pass calls on
    session.file = label
    torch.set_default_dtype(torch.float64 if exact else torch.float32)
    with ExactNumbers() if exact else nullcontext():
        modules = SourceModules(files, label).load()
    session.program = CandidateProgram(modules, entries, exact)
    session.program.allocates = any(word in text for text in files.values() for word in UNWRITTEN)
    for entry in entries.values():
        session.program.name(entry)
    return {"constants": {name: repr(session.program.name(name)) for name in constants}}


@verb
def change_settings(session: Session, settings: dict[str, int], loose: dict[str, int]) -> Any:
    """Give constants the values of the grader; `loose` are those of the last observed run."""
    _program(session).change(settings)
    _program(session).loose = loose
    return {}


@verb
def evaluate_expressions(session: Session, expressions: list[str]) -> Any:
    """The values of expressions over the program's modules: tensors, tuples of them, numbers."""
    return {"values": [_plain(_program(session).evaluate(text)) for text in expressions]}


@verb
def initial_weights(session: Session, seed: int) -> Any:
    """The parameters of a fresh model, a tied one under each of its names; `tied` gives the first
    name of each of the others."""
    set_seed(seed)
    named = named_weights(_program(session).make())
    first: dict[int, str] = {}
    for name, parameter in named.items():
        first.setdefault(id(parameter), name)
    tied = {n: first[id(p)] for n, p in named.items() if first[id(p)] != n}
    return {"tensors": {n: p.detach() for n, p in named.items()}, "tied": tied}


@verb
def observe_training(session: Session, weights: dict[str, Tensor], steps: int, exact: bool) -> Any:
    """So many steps from these weights: losses, parameters after them, and modes; and the weights
    that the model has at first. Without `exact` it has the loose constants, and what the program
    casts to 16 bits is cast."""
    program = _program(session)
    set_seed(0)
    before = program.change({} if exact else program.loose)
    model = program.make(weights)
    with (
        ExactNumbers(keep_half=not exact) as numbers,
        TrainingWatch(model, program.optimizer) as watch,
        _poisoned_memory(program),
    ):
        losses = program.train(steps)
    program.change(before)
    return {
        "exact": exact,
        "gradients": {} if exact else watch.gradients,
        "rates": as_floats(watch.rates),
        "losses": as_floats(losses),
        "graph": any(isinstance(loss, Tensor) and loss.requires_grad for loss in losses),
        "parameters": {n: p.detach().clone() for n, p in named_weights(model).items() if exact},
        "dropout": numbers.active > 0,
        "modes": list(watch.training_modes),
        "first weights": program.first_weights if exact else {},
    }


@verb
def observe_evaluation(session: Session, weights: dict[str, Tensor]) -> Any:
    """The number that evaluation returns, and the modes of the model meanwhile."""
    program = _program(session)
    model = program.make(weights)
    program.set_mode(training=True)
    with ExactNumbers() as exact, TrainingWatch(model) as watch, _poisoned_memory(program):
        value = program.call("evaluate", model)
    if not isinstance(value, (int, float, Tensor)):
        raise MissingName(f"evaluate returned a {type(value).__name__}, not a number")
    return {
        "value": as_floats([value]),
        "dropout": exact.active > 0,
        "modes": watch.training_modes + watch.other_modes,
    }


@verb
def observe_generation(
    session: Session, weights: dict[str, Tensor], prompts: list[Tensor], count: int
) -> Any:
    """The ids that follow each prompt."""
    program = _program(session)
    model = program.make(weights)
    program.set_mode(training=True)
    with ExactNumbers() as exact, _poisoned_memory(program):
        found = [program.call("generate", model, ids.clone(), count) for ids in prompts]
    return {"ids": found, "dropout": exact.active > 0}


@verb
def observe_prediction(session: Session, weights: dict[str, Tensor], items: list[Any]) -> Any:
    """The class ids for each item: a tensor, or several that the entry takes in order."""
    program = _program(session)
    model = program.make(weights)
    program.set_mode(training=True)
    with ExactNumbers() as exact, _poisoned_memory(program):
        found = [
            program.call("predict", model, *map(torch.clone, tensors))
            for tensors in ([item] if isinstance(item, Tensor) else item for item in items)
        ]
    try:
        classes = [torch.as_tensor(ids) for ids in found]
    except (TypeError, ValueError, RuntimeError) as error:
        raise MissingName(
            "predict is to return a tensor of class ids, or a list of them"
        ) from error
    return {"classes": classes, "dropout": exact.active > 0}


@verb
def train_model(session: Session, seed: int, steps: int) -> Any:
    """Train as `python train.py` does; losses, and where it ended when it raised."""
    program = _program(session)
    set_seed(seed)
    began = time.monotonic()
    model = program.make()
    answer: dict[str, Any] = {}
    with TrainingWatch(model) as watch:
        try:
            answer["losses"] = as_floats(program.train(steps)).tolist()
        except MissingName:
            raise
        except BaseException as error:
            answer = {"ended": describe_error(error, session.file, None)}
    answer["backward_losses"] = watch.step_losses()
    answer["modes"] = watch.training_modes
    answer["seconds"] = time.monotonic() - began
    return answer


@verb
def measure_training(session: Session, seed: int, steps: int) -> Any:
    """Such a training, and what can be measured of it, as texts by what one asks for."""
    return train_and_measure(_program(session), seed, steps)


@verb
def trace_training_step(session: Session, seed: int, steps: int, step: int) -> Any:
    """One step of such a training, operation by operation, as the JSON text of a `Trace`."""
    program = _program(session)
    set_seed(seed)
    program.make()
    trace = StepRecorder(program.optimizer.register_step_post_hook, step).trace(
        lambda: program.train(steps)
    )
    return {"trace": to_json(trace)}


@verb
def continue_training(session: Session, steps: int) -> Any:
    """Train the model that is there for more steps."""
    return {"losses": as_floats(_program(session).train(steps)).tolist()}


@verb
def model_logits(session: Session, inputs: list[Tensor]) -> Any:
    """What the model gives for these inputs, which are of any float type, in eval mode."""
    program, model = _program(session), _model(session)
    inputs = [t.to(torch.get_default_dtype()) if t.is_floating_point() else t for t in inputs]
    program.set_mode(training=False)
    with torch.no_grad():
        call = partial(program.call, FORWARD) if FORWARD in program.entries else operator.call
        out = call(model, *inputs)
    if not isinstance(out, Tensor):
        raise MissingName(f"the model returned a {type(out).__name__}, not one tensor of logits")
    return {"output": out}


@verb
def generate_ids(session: Session, prompt: Tensor, count: int) -> Any:
    """`count` ids more by the model that is there."""
    return {"output": _program(session).call("generate", _model(session), prompt, count)}


@verb
def sample_text(session: Session, expression: str) -> Any:
    """The text of an expression over the modules and the model that is there."""
    return {"text": str(_program(session).evaluate(expression, model=_model(session)))[:2000]}


@verb
def observe_stage(
    session: Session, weights: dict[str, Tensor], setup: str, expression: str, metered: bool
) -> Any:
    """The value of an expression of a stage after its lines of setup, with these weights in eval
    mode: the rows that went through the busiest weight, and the shape of the largest tensor, if
    they are metered, which takes its time."""
    program = _program(session)
    set_seed(0)
    model = program.make(weights)
    program.set_mode(training=False)
    old = list(named_weights(model).values())
    space = {**program.modules, "torch": torch, "model": model}
    space["fill"] = partial(fill_new, old=old)
    with torch.no_grad(), ExactNumbers(keep_half=True), _poisoned_memory(program):
        exec(compile(setup, STAGE_SETUP, "exec"), space)  # the challenge's own text
        built = [v for v in space.values() if isinstance(v, torch.nn.Module)]
        meter = ComputeMeter([*old, *(p for module in built for p in module.parameters())])
        with meter if metered else nullcontext():
            value = eval(compile(expression, STAGE_VALUE, "eval"), space)  # noqa: S307
    return {
        "value": plain_value(value),
        "rows": max(meter.rows.values(), default=0),
        "largest": list(meter.largest),
    }


def _poisoned_memory(program: CandidateProgram) -> AbstractContextManager[None]:
    """Fill memory that nobody wrote with NaN, in a program whose text can ask for some: it would
    hold what happens to lie there, so often zeros that a wrong program passes."""
    return new_memory_is_nan() if program.allocates else nullcontext()


def _program(session: Session) -> CandidateProgram:
    assert session.program is not None, "no program is loaded"
    return session.program


def _model(session: Session) -> Any:
    model = _program(session).model
    assert model is not None, "no model was made"
    return model


def _plain(value: Any) -> Any:
    return list(map(_plain, value)) if isinstance(value, (tuple, list)) else value
