"""Infer the inputs and other arguments of forward, by well-known names."""

from __future__ import annotations

from contextlib import suppress
from itertools import chain, groupby
from math import prod

from attnlab.catalogue.inputs import parse_input
from attnlab.catalogue.literals import Scalar, Symbol
from attnlab.errors import Refused
from attnlab.records import Contract, Input, Limits
from attnlab.sizes import UnknownSize, format_bytes, measure
from attnlab.suggest import did_you_mean
from attnlab.target.command_line import TraceCommand, UserOptions, input_flag
from attnlab.target.conventions import (
    ARGUMENTS,
    DIMENSIONS,
    FEEDS,
    LITERALS,
    PLAIN,
    names_mask,
    usual_feed,
)
from attnlab.target.outline import Definition, Parameter, Signature, format_signature


class Unfed(Refused):
    """Nothing says what some arguments of forward are: their names, and inputs to begin with."""

    def __init__(self, message: str, hint: str, proposed: dict[str, str]) -> None:
        super().__init__(message, hint, "--input")
        self.names = tuple(proposed)
        self.proposed = tuple(proposed.values())


COUNTS = ("hd", "H", "Hkv", "M", "V")  # sizes that a function is given as a number


def call_signatures(
    seen: Definition | None, said: UserOptions
) -> tuple[Signature | None, Signature | None]:
    """The signatures of constructor and call; a function is called, unless it makes a module."""
    if seen is None:
        return None, None
    if seen.kind == "function" and seen.build and takes_inputs(seen.build, said):
        return Signature(), seen.build
    return seen.build, seen.forward


def takes_inputs(function: Signature, said: UserOptions) -> bool:
    """Whether a function takes tensors itself: by its first argument, or by the user's inputs."""
    first = function.names()[:1]
    told = {*(entry.argument for entry in said.inputs), *said.arguments}
    return bool(told & set(function.names())) or any(
        name in FEEDS and (name not in DIMENSIONS or len(name) == 1) for name in first
    )


def infer_inputs(
    forward: Signature | None, said: UserOptions
) -> tuple[tuple[Input, ...], dict[str, Scalar | None]]:
    """The inputs in the order of `forward`, and its plain arguments.

    An argument with a default is passed only if the user gives a value.
    """
    if forward is None:
        return said.inputs, said.arguments
    given = {name: list(e) for name, e in groupby(said.inputs, lambda entry: entry.argument)}
    plain = dict(said.arguments)
    found: list[Input] = []
    missing: list[Parameter] = []
    for parameter in forward.parameters:
        name = parameter.name
        if name in given:
            found += given.pop(name)
        elif name in said.arguments or not parameter.required:
            continue
        elif (feed := _feed(parameter)) and parameter.annotation not in PLAIN:
            found.append(parse_input(f"{name}: {feed}"))
        elif (value := _usual_argument(name)) is not None:
            plain[name] = value
        else:
            missing.append(parameter)
    if not (found or plain or missing or given):
        found = _first_known_input(forward)
    for name in (*given, *said.arguments):
        must_take("--input", name, forward)
    if missing:
        raise _cannot_feed(forward, missing, said)
    return (*found, *chain.from_iterable(given.values())), plain


def _usual_argument(name: str) -> Scalar | None:
    """A value for an argument of forward that is no tensor; None where none is known."""
    if name in ARGUMENTS or DIMENSIONS.get(name) in COUNTS:
        return ARGUMENTS.get(name, Symbol(DIMENSIONS.get(name, "")))
    return LITERALS[name] if type(LITERALS.get(name)) in (int, float) else None


def _feed(parameter: Parameter) -> str:
    return parameter.feed or usual_feed(parameter.name, parameter.annotation)


def _first_known_input(forward: Signature) -> list[Input]:
    """Where every argument has a default, as in large libraries, the first that is known."""
    known = [
        (p.name, feed)
        for p in forward.parameters
        if (feed := _feed(p)) and p.annotation not in PLAIN
    ]
    return [parse_input(": ".join(known[0]))] if known else []


def must_take(flag: str, name: str, forward: Signature) -> None:
    """Refuse what a flag names where forward has no such argument."""
    if name not in forward.names() and not forward.keywords:
        hint = did_you_mean(name, forward.names()) or f"It takes {format_signature(forward)}."
        raise Refused(f"{flag}: forward takes no {name}", hint, flag)


def must_fit(contract: Contract, typed: TraceCommand, limits: Limits) -> None:
    """Raise `Refused` where one input alone is larger than the memory of a run."""
    for entry in contract.inputs:
        with suppress(UnknownSize):
            needed = 4 * prod(measure(axis, contract.sizes) for axis in entry.axes)
            if needed > limits.memory:
                room = format_bytes(limits.memory)
                says = f"{input_flag(entry)} takes {format_bytes(needed)}, and a run gets {room}"
                sizes = ", ".join(f"{s}={n}" for s, n in contract.sizes.items())
                hint = f'attnlab cost {typed.target} --at "S=4096" counts any sizes without data'
                raise Refused(f"{says} ({sizes})", hint, typed.target)


def _cannot_feed(forward: Signature, missing: list[Parameter], said: UserOptions) -> Unfed:
    names = ", ".join(p.name for p in missing)
    takes = f"{said.typed.target}: forward takes ({format_signature(forward)})"
    more = {
        p.name: f"{p.name} = {PLAIN[p.annotation]!r}"
        if p.annotation in PLAIN
        else f"{p.name}: {_axes(p)}"
        for p in missing
    }
    paste = said.typed.with_flags(inputs=tuple(more.values())).command()
    hint = f"say the axes of each, or a value, with your own symbols: {paste}"
    return Unfed(f"{takes}, and nothing says what {names} should be", hint, more)


def _axes(parameter: Parameter) -> str:
    """The axes to propose for an argument: `B S D`, or `dict(ids=B S int, mask=B S bool)`."""
    parts = (
        f"{key}={'B S bool' if names_mask(key) else usual_feed(key, '') or 'B S D'}"
        for key in parameter.keys
        if key.isidentifier()
    )
    return f"dict({text})" if (text := ", ".join(parts)) else "B S D"
