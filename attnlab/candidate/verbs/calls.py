"""Verbs that call the module and answer with its outputs."""

import copy
import io
import logging
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.candidate.input_copies import WAYS, cast_inputs, without_names
from attnlab.candidate.load import FunctionModule
from attnlab.candidate.registry import verb
from attnlab.candidate.session import OtherTarget, Session
from attnlab.candidate.verbs.building import answers_by_dtype
from attnlab.tracer.cast import Given, fresh, refill


@verb
def call(session: Session, inputs: Given, train: bool = False) -> Any:
    """The output, and nothing else."""
    session.set_mode(train)
    return session.answer(inputs, requires_grad=train)


@verb
def calls(session: Session, inputs: Sequence[Given], train: bool | Sequence[bool] = False) -> Any:
    """The outputs of several calls, one after the other; `train` is of all, or of each."""
    answers = []
    modes = [train] * len(inputs) if isinstance(train, bool) else train
    mine: Given = []
    for given, mode in zip(inputs, modes, strict=True):
        session.set_mode(mode)  # a forward may have changed it
        mine = refill(mine, given)
        answers.append(session.answer(given, mine, requires_grad=mode))
    return {"answers": answers}


@verb
def with_weights(
    session: Session, weights: list[dict[str, Tensor]], inputs: list[Given], back: dict[str, Tensor]
) -> Any:
    """The outputs of several calls, each with other weights; then the module has `back`."""
    session.set_mode(train=False)
    answers = []
    try:
        for lent, given in zip(weights, inputs, strict=True):
            told = session.set_parameters(lent)
            if told.get("missing") or told.get("shapes"):
                return told
            answers.append(session.answer(given))
    finally:
        session.set_parameters(back)
    return {"answers": answers}


@verb
def strided_calls(session: Session, inputs: list[Given], ways: list[str]) -> Any:
    """The outputs of calls whose inputs have the same values at other strides, each its way."""
    return {
        "answers": [
            session.answer(given, [(n, t if t is None else WAYS[way](t)) for n, t in given])
            for given, way in zip(inputs, ways, strict=True)
        ]
    }


@verb
def call_on_device(session: Session, device: str, inputs: Given) -> Any:
    """The output of a call on another device; the module itself stays."""
    if not getattr(torch, device).is_available():
        return {"absent": True}
    with OtherTarget(session) as target:
        if isinstance(target, nn.Module):
            session.target = copy.deepcopy(target).to(device)
        answer = session.answer([(n, t if t is None else t.to(device)) for n, t in inputs])
    out = answer.get("output")
    if isinstance(out, Tensor):
        return {**answer, "output": out.cpu(), "device": out.device.type}
    return answer


@verb
def cast_calls(session: Session, dtypes: list[str], inputs: list[Given]) -> Any:
    """The outputs of copies in other dtypes, as `answers_by_dtype` gives them."""

    def answer(dtype: torch.dtype) -> list[Any]:
        return [session.answer(cast_inputs(given, dtype)) for given in inputs]

    return answers_by_dtype(session, dtypes, answer)


@contextmanager
def _quiet() -> Iterator[None]:
    """Nothing is printed or logged: torch shows the lines of the file that it stumbles over."""
    aside, before = io.StringIO(), logging.root.manager.disable
    logging.disable()
    try:
        with redirect_stdout(aside), redirect_stderr(aside):
            yield
    finally:
        logging.disable(before)


@verb
def call_exported(session: Session, inputs: Given) -> Any:
    """The output of the program that torch.export makes. Imports the compiler."""
    folder = tempfile.tempdir
    tempfile.tempdir = os.curdir  # no folder can be written to: a name will do
    try:
        from torch.export import export
    except (ImportError, OSError) as error:
        return {"unable": f"{type(error).__name__}: {error}"}
    finally:
        tempfile.tempdir = folder
    whole = (
        session.target if isinstance(session.target, nn.Module) else FunctionModule(session.target)
    )
    args = tuple(without_names(inputs))
    with torch.no_grad(), _quiet():
        program = export(whole.eval(), args).module()
    with OtherTarget(session):
        session.target = program
        return session.answer([(f"input{i}", t) for i, t in enumerate(args)])


@verb
def cached_steps(
    session: Session,
    calls: list[Given],
    batch: int,
    length: int,
    parents: Tensor | None = None,
    train: bool = False,
    sibling: dict[str, Any] | None = None,
    negate: bool = False,
    others: list[Given] | None = None,
) -> Any:
    """The outputs of calls that share a cache, and of each the numbers that it then holds and the
    places of their memory, counted as they appear. After the first of them it is reordered, or an
    instance `sibling` is built and called, or all weights change their sign until the end. After
    each call the cache that it was given is given to a call with `others` as well."""
    if session.cache is None:
        raise TypeError("no cache was declared")
    session.set_mode(train)
    found: dict[str, Any] = {}
    held: list[dict[str, Any]] = []
    known: dict[int, int] = {}  # places of memory by their addresses
    with torch.no_grad(), ExitStack() as negated:
        session.cache.target = session.target
        session.cache.begin(batch, length)
        for i, inputs in enumerate(calls):
            if sibling is not None and i == 1:
                _call_sibling(session, **sibling)
            if parents is not None and i == 1:
                session.cache.reorder_rows(parents)
            if negate and i == 1:
                negated.enter_context(_negated(session))
            given = session.cache.cache
            out = session.invoke(fresh(inputs), continues=True)
            if others is not None:
                made = session.cache.cache
                session.cache.cache = given
                session.invoke(fresh(others[i]), continues=True)
                session.cache.cache = made
            found[str(i)] = out.detach().clone() if isinstance(out, Tensor) else None
            kept = session.cache.tensors()
            addresses = [t.untyped_storage().data_ptr() for t in kept if t.dim()]
            places = {known.setdefault(address, len(known)) for address in addresses}
            held.append({"numbers": sum(t.numel() for t in kept), "places": sorted(places)})
    return {"outputs": found, "held": held}


@contextmanager
def _negated(session: Session) -> Iterator[None]:
    """All parameters with the other sign: exact, and the same however they are laid out."""
    weights = {id(p): p for _, p in session.named_tensors("parameters")}.values()
    try:
        for weight in weights:
            weight.neg_()
        yield
    finally:
        for weight in weights:
            weight.neg_()


def _call_sibling(session: Session, other: Given, **recipe: Any) -> None:
    """Another instance reads a sequence of its own."""
    cache = session.cache
    try:
        with OtherTarget(session):
            session.build(**recipe)
            session.set_mode(train=False)
            session.invoke(fresh(other))
    finally:
        session.cache = cache
