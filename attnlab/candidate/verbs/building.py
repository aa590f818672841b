"""Verbs that load a candidate, build its module and exchange its parameters."""

import contextlib
import copy
import importlib
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.candidate.load import compile_source, module_name, move_in, remember
from attnlab.candidate.process_state import words_of
from attnlab.candidate.program import SourceModules
from attnlab.candidate.registry import verb
from attnlab.candidate.session import HUNG, OtherTarget, Session
from attnlab.candidate.stand_ins import offer_stand_ins
from attnlab.tracer.cast import Given
from attnlab.tracer.raw_trace import describe_error


@verb
def load(
    session: Session,
    file: str,
    text: str,
    path: str,
    own: dict[str, Any] | None,
    siblings: dict[str, str] | None = None,
) -> Any:
    """Execute the source as a module of its own, which may import its siblings."""
    session.clear()
    if siblings:
        SourceModules(siblings, "").install()
    session.file = file
    if own:
        move_in(own)
        offer_stand_ins("", {})
        if own["module"]:
            session.module = importlib.import_module(own["module"])
            session.file = getattr(session.module, "__file__", None) or file
            return {}
    session.reachable_names = words_of(text) if not own else None
    session.module = types.ModuleType(module_name(file))
    session.module.__file__ = path or file
    sys.modules[session.module.__name__] = session.module
    remember(file, text)
    if own:
        offer_stand_ins(text, session.module.__dict__)
    exec(compile_source(text, file), session.module.__dict__)
    if not own and (undone := session.surroundings.undo_settings()):
        sys.stderr.write(f"attnlab undid settings of this file: {', '.join(undone)}\n")
    return {}


@verb
def build(
    session: Session,
    name: str | None,
    init: dict[str, Any] | list[Any],
    seed: int,
    arguments: dict[str, Any] | None = None,
    containers: Sequence[dict[str, Any]] = (),
    put: dict[str, Tensor] | None = None,
    inputs: Sequence[Given] = (),
    device: str = "cpu",
) -> Any:
    """Build the target as `Session.build` does, on a device. Loads the weights `put`, with the
    answer of `set_parameters`; where they fit, it is called with each of `inputs`."""
    with torch.device(device) if device != "cpu" else contextlib.nullcontext():
        session.build(name, init, seed, arguments, containers)
    answer: dict[str, Any] = session.set_parameters(put) if put is not None else {}
    if inputs and not (answer.get("missing") or answer.get("shapes")):
        answer |= _try_calls(session, inputs)
    return answer


@verb
def declare_cache(session: Session, **cache: str) -> Any:
    """Declare how the modules to be built keep keys and values between calls."""
    session.cache_form = cache
    return {}


@verb
def declare_containers(session: Session, containers: Sequence[dict[str, Any]]) -> Any:
    """Declare which arguments of the modules to be built are dicts, lists or tuples of inputs."""
    session.declare_containers(containers)
    return {}


@verb
def parameters(session: Session) -> Any:
    return {"tensors": {n: p.detach().clone() for n, p in session.named_tensors("parameters")}}


@verb
def buffers(session: Session) -> Any:
    return {"tensors": {n: b.detach() for n, b in session.named_tensors("buffers")}}


@verb
def set_parameters(session: Session, tensors: dict[str, Tensor]) -> Any:
    """What `Session.set_parameters` answers."""
    return session.set_parameters(tensors)


@verb
def put_aside(session: Session) -> Any:
    """Keep the current module for `take_back`; the next one is built beside it."""
    session.set_aside = session.target
    return {}


@verb
def take_back(session: Session) -> Any:
    """Continue with the module that was put aside."""
    if session.set_aside is not None:
        session.target, session.set_aside = session.set_aside, None
    return {}


@verb
def cast(session: Session, dtype: str) -> Any:
    """The module in another floating-point type."""
    if isinstance(session.target, nn.Module):
        session.target.to(getattr(torch, dtype))
    return {}


@verb
def cast_twin(session: Session, dtype: str) -> Any:
    """Put the module aside for a copy in another type; `failed` where it cannot be copied, and
    where what is copied are no parameters any more."""
    if isinstance(session.target, torch.jit.ScriptModule):
        return {"failed": True}
    try:
        twin = copy.deepcopy(session.target)
    except Exception:  # attributes may be anything
        return {"failed": True}
    put_aside(session)
    session.target = twin
    return cast(session, dtype)


def answers_by_dtype(
    session: Session, dtypes: list[str], answer: Callable[[torch.dtype], list[Any]]
) -> dict[str, Any]:
    """What `answer` gives for a copy of the target in each dtype, one list after the other;
    `{"failed": True}` where the target cannot be copied."""
    answers: list[Any] = []
    with OtherTarget(session) as target:
        for dtype in dtypes:
            session.target = target
            if cast_twin(session, dtype).get("failed"):
                return {"failed": True}
            answers += answer(getattr(torch, dtype))
    return {"answers": answers}


def _try_calls(session: Session, inputs: Sequence[Given]) -> dict[str, Any]:
    """The answers to calls; None where one raises, which a call of its own reports. An error of the
    very first call is in the answer: the next call may pass."""
    answers: list[Any] = []
    try:
        for given in inputs:
            session.set_mode(train=False)
            answers.append(session.answer(given))
    except BaseException as error:
        if type(error).__name__ == HUNG:
            raise
        fell = {} if answers else {"fell": describe_error(error, session.file, session.entry)}
        return {"answers": None, **fell}
    return {"answers": answers}
