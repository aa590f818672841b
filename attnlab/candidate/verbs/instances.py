"""Verbs that call other instances of the module, to see what instances share.

The `recipe` says how an instance is built: its name, init and seed, as in `Session.build`.
"""

from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.candidate.describe_output import output
from attnlab.candidate.input_copies import without_names
from attnlab.candidate.registry import verb
from attnlab.candidate.session import OtherTarget, Session
from attnlab.candidate.uninitialised import NewBooleansAreFalse, allocates, new_memory_is_nan
from attnlab.candidate.verbs.calls import calls
from attnlab.tracer.cast import Given


@verb
def fresh_instance(
    session: Session, inputs: list[Given], train: bool | list[bool], **recipe: Any
) -> Any:
    """The outputs of another instance with this one's parameters, and which of its own these
    calls changed."""
    with OtherTarget(session) as target:
        session.build(**recipe)
        _copy_parameters(_parameters_of(target), session.target)
        before = {n: w.clone() for n, w in _parameters_of(session.target).items()}
        answer = calls(session, inputs, train)
        after = _parameters_of(session.target)
    changed = [n for n, w in before.items() if n not in after or not torch.equal(w, after[n])]
    answer |= {"before": {n: before[n] for n in changed}}
    return answer | {"after": {n: after[n] for n in changed if n in after}}


@verb
def uninitialised_memory(session: Session, inputs: list[Given], **recipe: Any) -> Any:
    """As `fresh_instance`, where new memory is NaN; and which parameters begin so. Where a
    text can make them, new booleans are True, and False in a second instance."""
    answers, begun = [], set[str]()
    ways = (nullcontext, NewBooleansAreFalse)[: 1 + allocates(session.reachable_names)]
    with OtherTarget(session) as target:
        for way in ways:
            with new_memory_is_nan(), way():
                session.build(**recipe)
                begun |= {
                    n for n, w in _parameters_of(session.target).items() if w.isnan().any().item()
                }
                _copy_parameters(_parameters_of(target), session.target)
                answers += calls(session, inputs)["answers"]
    return {"answers": answers, "begun": sorted(begun)}


@verb
def with_changed_buffer(session: Session, buffer: str, inputs: Given, **recipe: Any) -> Any:
    """The outputs of two instances that differ in the values of a buffer; `spoiled` where the
    second still has those after its call."""
    path, _, leaf = buffer.rpartition(".")
    with OtherTarget(session):
        session.build(**recipe)
        answers = [session.answer(inputs)]
        session.build(**recipe)
        owner = session.target.get_submodule(path)
        usual = owner._buffers[leaf]
        unit = 1 + 1j if usual.is_complex() else 1  # changes both parts of a number
        other = usual.logical_not() if usual.dtype is torch.bool else usual + unit
        owner._buffers[leaf] = other
        answers.append(session.answer(inputs))
    return {"answers": answers, "spoiled": owner._buffers.get(leaf) is other}


@verb
def after_sibling(session: Session, other: Given, inputs: Given, **recipe: Any) -> Any:
    """The output after another instance was built, called, and given other parameters."""
    with OtherTarget(session):
        session.build(**recipe)
        session.answer(other)
        for weight in _parameters_of(session.target).values():
            weight.add_(1)
    return session.answer(inputs)


@verb
def positional_calls(
    session: Session, inputs: list[Given], init: dict[str, Any], **recipe: Any
) -> Any:
    """The outputs of an instance with this one's parameters that is built and called by
    position alone; inputs at the end that are None are left out."""
    with OtherTarget(session) as target:
        session.build(init=list(init.values()), **recipe)
        _copy_parameters(_parameters_of(target), session.target)
        if isinstance(session.target, nn.Module):
            session.target.eval()
        with torch.no_grad():
            return {"answers": [output(_plainly(session, given)) for given in inputs]}


def _plainly(session: Session, given: Given) -> Any:
    """A call by position alone, which goes on from nothing that was kept."""
    if session.cache is None:
        return session.target(*without_names(given))
    session.cache.clear()
    own = session.cache.arguments() if session.cache.form == "given" else {}
    return session.cache.output(session.target(*without_names(given), **own))


@verb
def call_reloaded(session: Session, inputs: Given, **recipe: Any) -> Any:
    """The output of a second instance that was given this one's state_dict."""
    with OtherTarget(session) as target:
        saved = _saved_state(target)
        session.build(**recipe)
        try:
            if saved:
                session.target.load_state_dict(saved)
        except RuntimeError as error:
            return {"refused": str(error)}
        return session.answer(inputs)


def _parameters_of(target: Any) -> dict[str, Tensor]:
    named = target.named_parameters() if isinstance(target, nn.Module) else ()
    return {name: weight.detach() for name, weight in named}


def _copy_parameters(weights: dict[str, Tensor], target: Any) -> None:
    """Copy in those parameters that have the same name and shape."""
    for name, weight in _parameters_of(target).items():
        if name in weights and weights[name].shape == weight.shape:
            weight.copy_(weights[name])


def _saved_state(target: Any) -> dict[str, Any]:
    """A copy of its state_dict; none of a function."""
    state = target.state_dict() if isinstance(target, nn.Module) else {}
    return {n: v.clone() if isinstance(v, Tensor) else v for n, v in state.items()}
